import type { RunOutcome } from '../run.ts'

export const OUTCOME_TEXT: Record<RunOutcome, string> = {
  completed: 'Every agent completed its work.',
  partial: 'Some agents were skipped; the others completed their work.',
  failed: 'Some agents failed.',
  cancelled: 'The run was cancelled.',
}

/** Replaces control and text-direction characters in text of agents by �. */
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

/** Escapes text for elements and quoted attributes. */
export function escapeHtml(text: string): string {
  return visible(text).replace(/[&<>"']/g, (letter) => ENTITIES[letter]!)
}
