import { OPERATOR } from '../../../base/agent.ts'
import { isEnd, type Task, type TaskState } from '../../task.ts'
import type { StoreEffect } from '../effect.ts'
import type { HappeningOf, HappeningType } from '../event.ts'
import type { TaskSettings } from '../settings.ts'
import { EVENT_TO, next } from '../transitions.ts'
import type { Refusal, RefusalCode, View } from '../view.ts'

/** What a step's own part comes to. Timers and what is done outside follow from the task's new state. */
export interface Done {
  ok: true
  task: Task
  effects: StoreEffect[]
}

export type Outcome = Done | Refusal
export type Handler<T extends HappeningType> = (
  view: View,
  event: HappeningOf<T>,
  settings: TaskSettings,
) => Outcome
export type Handlers<T extends HappeningType = HappeningType> = { [K in T]: Handler<K> }

export function done(task: Task, ...effects: StoreEffect[]): Done {
  return { ok: true, task, effects }
}

export function also(outcome: Done, ...effects: StoreEffect[]): Done {
  return { ...outcome, effects: [...effects, ...outcome.effects] }
}

export function refuse(code: RefusalCode, message: string): Refusal {
  return { ok: false, code, message }
}

/** A step that asks for an edge that isn't in the table is a fault of ours, not of a sender. */
export function moved(task: Task, state: TaskState): Task {
  if (task.state === state) return task
  const reached = next(task.state, EVENT_TO[state])
  if (reached === undefined) throw new Error(`${task.id} cannot go from ${task.state} to ${state}`)
  return { ...task, state: reached }
}

/** Whoever does the work now. */
export function workerOf(task: Pick<Task, 'agent' | 'takenOver'>): string {
  return task.takenOver ? OPERATOR : task.agent
}

export function parentIsOpen({ parent }: View): boolean {
  return parent !== null && !isEnd(parent.state)
}
