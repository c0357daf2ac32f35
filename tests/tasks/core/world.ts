/** An engine in memory: stores the reduced task and performs its effects under a simulated clock. */

import { type Breaker, CLOSED, recordOutcome } from '../../../src/tasks/core/circuit-breaker.ts'
import {
  ON_DUE,
  pendingEffects,
  type TaskEffect,
  type TaskEvent,
  type TaskOutsideEffect,
  type TaskStoreEffect,
  type WithKey,
} from '../../../src/tasks/core/events-and-effects.ts'
import { newTask, type ReducedTask, reduce, type TaskDraft } from '../../../src/tasks/core/reduce.ts'
import type { RefusedEvent } from '../../../src/tasks/core/refusal.ts'
import { DEFAULT_TASK_SETTINGS, type TaskSettings } from '../../../src/tasks/core/snapshot.ts'
import { isEnd, type Judge, type Task, type TaskState, type TaskTimer } from '../../../src/tasks/task.ts'

/** `under`: the delegator's task. */
export type Delegation = Omit<Partial<TaskDraft>, 'parent'> & { agent: string; under?: string }

/** Judges: a model, which speaks through the service, and an agent. */
export const MODEL: Judge = { kind: 'model', name: 'wise' }
export const REVIEWER: Judge = { kind: 'agent', name: 'rev' }

type OfType<T extends TaskEffect['type']> = Extract<TaskEffect, { type: T }>

export function createWorld(given: Partial<TaskSettings> = {}) {
  const settings: TaskSettings = { ...DEFAULT_TASK_SETTINGS, ...given }
  const tasks = new Map<string, Task>()
  const timers = new Map<string, { task: string; kind: TaskTimer; at: number }>()
  const requests = new Map<string, { task: string; awaits: boolean; expiresAt: number | null }>()
  const breakers = new Map<string, Breaker>()
  const effects: TaskEffect[] = []
  const keys = new Set<string>()
  const states = new Set<TaskState>()
  let outside: WithKey<TaskOutsideEffect>[] = []
  let now = 1_000_000
  let onEffect: (effect: TaskEffect) => void = () => {}

  const childrenOf = (id: string) => [...tasks.values()].filter(({ parent }) => parent === id)

  function ancestorsOf(task: Task): Task[] {
    const found: Task[] = []
    for (let up = task.parent; up !== null; up = tasks.get(up)!.parent) found.unshift(tasks.get(up)!)
    return found
  }

  function snapshotOf(task: Task) {
    return {
      now,
      task,
      parent: task.parent === null ? null : tasks.get(task.parent)!,
      children: childrenOf(task.id),
      ancestors: ancestorsOf(task),
      breaker: breakers.get(task.agent) ?? CLOSED,
      settings,
    }
  }

  function tell(task: Task, event: TaskEvent): ReducedTask {
    const reduced = reduce(snapshotOf(task), event)
    if (!reduced.ok) return reduced
    tasks.set(reduced.state.id, reduced.state)
    states.add(reduced.state.state)
    for (const effect of reduced.effects) {
      if (keys.has(effect.key)) throw new Error(`${effect.key} stands for two effects`)
      keys.add(effect.key)
      effects.push(effect)
      carryOut(effect)
      onEffect(effect)
    }
    return reduced
  }

  function carryOut(effect: WithKey<TaskStoreEffect> | WithKey<TaskOutsideEffect>) {
    switch (effect.type) {
      case 'set_timer':
        timers.set(`${effect.task} ${effect.kind}`, effect)
        break
      case 'clear_timer':
        timers.delete(`${effect.task} ${effect.kind}`)
        break
      case 'ask_person':
        requests.set(effect.question, effect)
        break
      case 'withdraw':
        requests.delete(effect.question)
        break
      case 'record_outcome': {
        const { agent, outcome } = effect
        const breaker = breakers.get(agent) ?? CLOSED
        breakers.set(agent, recordOutcome(breaker, outcome, now, settings.breaker))
        break
      }
      case 'dispatch':
        tell(tasks.get(effect.task)!, effect.event)
        break
      case 'start_agent':
      case 'interrupt_agent':
      case 'run_checks':
      case 'run_judge':
        outside.push(effect)
    }
  }

  let count = 0

  /** Like the engine: the parent accepts first, then the child; both are stored or neither. */
  function delegate({ agent, delegator, under, ...more }: Delegation): Task | RefusedEvent {
    const id = `task_${count + 1}`
    const parent = under === undefined ? undefined : tasks.get(under)!
    const by = delegator ?? parent?.agent ?? 'operator'
    const given = { id, delegator: by, agent, text: `Do ${id}`, createdAt: now, ...more }
    const task = newTask(parent === undefined ? given : { ...given, parent })
    const admitted = reduce(snapshotOf(task), { type: 'delegated' })
    if (!admitted.ok) return admitted
    if (parent !== undefined) {
      const { requiresResponse } = task
      const told = tell(parent, { type: 'child_delegated', by, child: id, requiresResponse })
      if (!told.ok) return told
    }
    count++
    tasks.set(id, task)
    tell(task, { type: 'delegated' })
    return tasks.get(id)!
  }

  function fireNext(until: number): boolean {
    const next = [...timers.values()].sort((a, b) => a.at - b.at)[0]
    if (next === undefined || next.at > until) return false
    now = Math.max(now, next.at)
    timers.delete(`${next.task} ${next.kind}`)
    tell(tasks.get(next.task)!, ON_DUE[next.kind])
    return true
  }

  return {
    settings,
    tasks,
    timers,
    requests,
    effects,
    states,
    breakers,
    childrenOf,
    delegate,
    get now() {
      return now
    },
    set now(at: number) {
      now = Math.max(now, at)
    },
    on(listen: (effect: TaskEffect) => void) {
      onEffect = listen
    },
    task: (id: string) => tasks.get(id)!,
    /** Sends an event to a task. Returns the result. */
    say: (id: string, event: TaskEvent) => tell(tasks.get(id)!, event),
    fireNext,
    /** Lets time pass; timers fire in order. */
    pass(seconds: number) {
      const until = now + seconds * 1000
      while (fireNext(until));
      now = until
    },
    effectsOf: <T extends TaskEffect['type']>(type: T) =>
      effects.filter((effect): effect is OfType<T> => effect.type === type),
    sends: (kind: string) => effects.filter((effect) => effect.type === 'send' && effect.kind === kind),
    takeOutside() {
      const taken = outside
      outside = []
      return taken
    },
    /** Drops pending effects, and derives them again from the store. */
    restart() {
      outside = [...tasks.values()].flatMap(pendingEffects)
    },
    isOver: () => [...tasks.values()].every(({ state }) => isEnd(state)),
  }
}

export type World = ReturnType<typeof createWorld>
