import type { Agent } from '../data/queries.ts'

/** States have a word beside their colour, for people who cannot tell the colours apart. */
const TONES: Record<string, string> = {
  idle: 'calm',
  busy: 'busy',
  working: 'busy',
  initializing: 'busy',
  waiting_input: 'asks',
  blocked: 'asks',
  paused: 'held',
  error: 'bad',
  exited: 'off',
  unknown: 'off',
  completed: 'done',
}

const WORDS: Record<string, string> = {
  waiting_approval: 'needs approval',
  waiting_child: 'waiting for subtasks',
  waiting_input: 'needs a person',
  waiting_parent: 'waiting for delegator',
  waiting_user: 'needs an answer',
  initializing: 'starting',
  unknown: 'not running',
}

export function toneOf(state: string): string {
  return TONES[state] ?? 'off'
}

export function StateLabel({ state }: { state: string }) {
  return (
    <span className="state" data-tone={toneOf(state)}>
      <span className="dot" aria-hidden="true" />
      {WORDS[state] ?? state}
    </span>
  )
}

const DELIVERY_TONES: Record<string, string> = {
  queued: 'held',
  written: 'busy',
  submitted: 'busy',
  read: 'done',
  uncertain: 'asks',
  failed: 'bad',
}

const TASK_TONES: Record<string, string> = {
  pending: 'held',
  completed: 'done',
  failed: 'bad',
  cancelled: 'off',
  skipped: 'off',
  blocked: 'asks',
  waiting_approval: 'asks',
  waiting_user: 'asks',
  validating: 'busy',
}

export function Chip({ word, tone }: { word: string; tone?: string | undefined }) {
  return (
    <span className="chip" data-tone={tone ?? DELIVERY_TONES[word] ?? TASK_TONES[word] ?? 'busy'}>
      {WORDS[word] ?? word.replaceAll('_', ' ')}
    </span>
  )
}

/** The program or runtime of an agent. */
export function programOf({ program, runtime }: Agent): string {
  return program ?? (runtime === 'none' ? 'outside Orchub' : runtime)
}

/** How much of its context window an agent uses, as its program reports it. */
export function ContextUsage({ context }: { context: Agent['context'] }) {
  if (context?.percent === undefined) return null
  const percent = Math.min(100, Math.round(context.percent))
  return (
    <span className="context" data-level={context.level} title={context.model}>
      <span className="context-bar" aria-hidden="true">
        <i style={{ width: `${percent}%` }} />
      </span>
      {percent}%<span className="sr"> of the context used</span>
    </span>
  )
}
