import type { RunOutcome, Spent } from '../run.ts'

export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = ms / 1000
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Empty where nothing is known to have been spent. */
export function spentText({ cost, inputTokens, outputTokens }: Spent): string {
  const tokens = inputTokens + outputTokens
  if (tokens === 0 && cost === null) return ''
  return cost === null ? `${tokens} tokens` : `${cost.toFixed(cost < 1 ? 4 : 2)} (${tokens} tokens)`
}

export function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  return bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`
}

export const OUTCOME_TEXT: Record<RunOutcome, string> = {
  completed: 'Every agent completed its work.',
  partial: 'Some agents were skipped; the others completed their work.',
  failed: 'Some agents failed.',
  cancelled: 'The run was cancelled.',
}

/** What agents wrote may hold anything. Control characters and those that turn the direction of text are shown as �. */
export function visible(text: string): string {
  return text
    .replace(/\r\n?/g, '\n')
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, '\uFFFD')
}

export function shortened(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** For text and for quoted attributes. */
export function escapeHtml(text: string): string {
  return visible(text).replace(/[&<>"']/g, (letter) => ENTITIES[letter]!)
}
