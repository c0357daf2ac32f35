import { OPERATOR, ORCHESTRATOR } from '../../base/agent.ts'
import { isEnd, type LiveState, TASK_TIMERS, type Task } from '../task.ts'
import { type Effect, pendingEffects, type StoreEffect, timerOf } from './effect.ts'
import { AUTHOR, byOf, type Happening, type HappeningType, ON_DUE } from './event.ts'
import type { TaskSettings } from './settings.ts'
import { answering } from './steps/answering.ts'
import { asking } from './steps/asking.ts'
import { decisions } from './steps/decisions.ts'
import { delivery } from './steps/delivery.ts'
import { extensions } from './steps/extensions.ts'
import { family, tellChildren, tellRelatives } from './steps/family.ts'
import { done, type Handlers, type Outcome, refuse, workerOf } from './steps/outcome.ts'
import { reports } from './steps/reports.ts'
import { reviewing } from './steps/reviewing.ts'
import { validation } from './steps/validation.ts'
import { isLegal } from './transitions.ts'
import type { Refusal, Stepped, View } from './view.ts'

const HANDLERS: Handlers<Exclude<HappeningType, 'held' | 'released'>> = {
  ...delivery,
  ...asking,
  ...answering,
  ...extensions,
  ...reports,
  ...validation,
  ...reviewing,
  ...decisions,
  ...family,
}

const TIMERS: ReadonlySet<HappeningType> = new Set(Object.values(ON_DUE).map(({ type }) => type))

/**
 * What an event does to one task: its new state, and what must be done about it. Late, doubled and foreign events are
 * refused with words for their sender; nothing is thrown for them and nothing is done twice.
 */
export function step(view: View, event: Happening, settings: TaskSettings): Stepped {
  const before = view.task
  if (isEnd(before.state)) return afterEnd(view, event, settings)
  const refused = refuseForeign(before, event)
  if (refused !== undefined) return refused
  const outcome = react(view, event, settings)
  return outcome.ok ? conclude(view, outcome.task, outcome.effects) : outcome
}

/** Ends are final. Two things still pass: the receipt of an interrupt, and a cancellation on its way to what outlived it. */
function afterEnd(view: View, event: Happening, settings: TaskSettings): Stepped {
  const { task } = view
  if (event.type === 'interrupted') {
    const outcome = delivery.interrupted(view, event, settings)
    return outcome.ok ? conclude(view, outcome.task, outcome.effects) : outcome
  }
  if (event.type === 'parent_ended' && event.as === 'cancelled') {
    return conclude(view, task, tellChildren(view, { ...task, state: 'cancelled', reason: event.reason }))
  }
  return refuse('TASK_ENDED', `${task.id} has ended: ${task.state}, ${task.reason}`)
}

/** A held task lives on under its hold, so that nothing said meanwhile is lost; only its clocks stand still. */
function react(view: View, event: Happening, settings: TaskSettings): Outcome {
  const { task, now } = view
  const { held } = task
  if (event.type === 'held') {
    if (held !== null) return refuse('DUPLICATE', `${task.id} is held already: ${held.reason}`)
    return done(freeze(task, { by: event.by, reason: event.reason, at: now }))
  }
  if (event.type === 'released') {
    if (held === null) return refuse('STALE', `${task.id} is not held`)
    return done(later({ ...task, state: held.state, held: null }, now - held.at))
  }
  if (held === null) return handle(view, event, settings)
  if (TIMERS.has(event.type)) return refuse('STALE', `${task.id} is held; its clocks stand still`)
  const outcome = handle({ ...view, task: { ...task, state: held.state, held: null } }, event, settings)
  if (!outcome.ok || isEnd(outcome.task.state)) return outcome
  return { ...outcome, task: freeze(outcome.task, held) }
}

function freeze(task: Task, { by, reason, at }: { by: string; reason: string; at: number }): Task {
  return { ...task, state: 'blocked', held: { by, reason, at, state: task.state as LiveState } }
}

/** Every clock of it so much later. */
export function later(task: Task, ms: number): Task {
  return {
    ...task,
    due: task.due === null ? null : dueLater(task.due, ms),
    questions: task.questions.map((question) =>
      question.expiresAt === null ? question : { ...question, expiresAt: question.expiresAt + ms },
    ),
  }
}

function dueLater(due: NonNullable<Task['due']>, ms: number): Task['due'] {
  const { since } = due
  return { ...due, at: due.at + ms, ...(since === undefined ? {} : { since: since + ms }) }
}

function handle<E extends Exclude<Happening, { type: 'held' | 'released' }>>(
  view: View,
  event: E,
  settings: TaskSettings,
): Outcome {
  // The table is total; TypeScript can't follow that the handler found is the one for this very event.
  const handler = HANDLERS[event.type] as (view: View, event: E, settings: TaskSettings) => Outcome
  return handler(view, event, settings)
}

function refuseForeign(task: Task, event: Happening): Refusal | undefined {
  const by = byOf(event)
  switch (AUTHOR[event.type]) {
    case 'worker':
      if (by === workerOf(task)) return undefined
      return refuse('NOT_YOURS', `${task.id} is the task of ${workerOf(task)}`)
    case 'delegator':
      if (by === task.delegator || by === OPERATOR) return undefined
      return refuse('NOT_YOURS', `${task.id} was delegated by ${task.delegator}`)
    case 'in_charge':
      if (by === task.delegator || by === OPERATOR || by === ORCHESTRATOR) return undefined
      return refuse('NOT_YOURS', `${task.id} was delegated by ${task.delegator}`)
    case 'keeper':
      if (by === OPERATOR || by === ORCHESTRATOR) return undefined
      return refuse('NOT_YOURS', `Only a person can do that to ${task.id}`)
    case 'person':
      if (by === OPERATOR) return undefined
      return refuse('NOT_A_PERSON', `Only a person can do that to ${task.id}`)
    case 'judge':
      if (by === judgeOf(task) || by === OPERATOR) return undefined
      return refuse('NOT_YOURS', `${task.id} is not yours to judge`)
    case 'addressee':
    case 'engine':
      return undefined
  }
}

/** Who has the word on its claims: an agent, or the service for a model. */
function judgeOf({ judge }: Task): string | undefined {
  return judge?.kind === 'model' ? ORCHESTRATOR : judge?.name
}

/** Versions, keys, timers and the work outside follow from the task before and after: no step can forget one. */
function conclude(view: View, after: Task, effects: readonly StoreEffect[]): Stepped {
  const before = view.task
  if (!isLegal(before, after))
    throw new Error(`${before.id} cannot go from ${before.state} to ${after.state}`)
  const all = [...effects, ...timerEffects(before, after), ...tellRelatives(view, after)]
  if (all.length === 0 && !isChanged(before, after)) return { ok: true, task: before, effects: [] }
  const task = { ...after, version: before.version + 1 }
  const keyed: Effect[] = all.map((effect, index) => ({
    ...effect,
    key: `${task.id}@${task.version}/${index}`,
  }))
  const known = pendingEffects(before)
  const outside = pendingEffects(task).filter(({ key }) => !known.some((one) => one.key === key))
  return { ok: true, task, effects: [...keyed, ...outside] }
}

function timerEffects(before: Task, after: Task): StoreEffect[] {
  const effects: StoreEffect[] = []
  for (const kind of TASK_TIMERS) {
    const at = timerOf(after, kind)
    if (at === timerOf(before, kind)) continue
    if (at === undefined) effects.push({ type: 'clear_timer', task: after.id, kind })
    else effects.push({ type: 'set_timer', task: after.id, kind, at })
  }
  return effects
}

function isChanged(before: Task, after: Task): boolean {
  return (Object.keys(after) as (keyof Task)[]).some((key) => before[key] !== after[key])
}
