import { AppError } from '../base/errors.ts'
import { describeHalt, type Halted } from '../commands/halt-state.ts'
import type { HaltRow } from './store.ts'

export function haltedIn({ halted_by: by, reason, at }: HaltRow): Halted {
  return { by, reason: reason ?? undefined, at }
}

export function agentsIn({ agents }: HaltRow): string[] {
  return JSON.parse(agents) as string[]
}

export function goOnMessage(halted: Halted, by: string) {
  return {
    title: 'Go on',
    content: `${describeHalt(halted)}. ${by} lets the work go on now: go on where you were. What you said meanwhile was refused and not done; say it again if it still holds.`,
    priority: 'normal' as const,
  }
}

export function haltEntry(what: string, actor: string, text: string, data: Record<string, unknown>) {
  return { type: `team.${what}`, class: 'public' as const, actor, text, data }
}

export function stoppedAgain(): AppError {
  return new AppError('CONFLICT', 'Everything was stopped once more in the meantime', {
    hint: 'orc status tells by whom and why; then orc go again.',
  })
}
