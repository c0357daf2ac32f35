/** An engine in memory: stores the reduced task and performs its effects under a simulated clock. */

import { type Breaker, CLOSED, recordOutcome } from '../../../src/tasks/core/circuit-breaker.ts'
import {
  ON_DUE,
  pendingEffects,
  type TaskEffect,
  type TaskEvent,
  type TaskOutsideEffect,
  timerOf,
  type WithKey,
} from '../../../src/tasks/core/events-and-effects.ts'
import { newTask, type ReducedTask, reduce, type TaskDraft } from '../../../src/tasks/core/reduce.ts'
import type { RefusedEvent } from '../../../src/tasks/core/refusal.ts'
import { DEFAULT_TASK_SETTINGS, type TaskSettings } from '../../../src/tasks/core/snapshot.ts'
import { isEnd, type Judge, TASK_TIMERS, type Task, type TaskState } from '../../../src/tasks/task.ts'

/** `under`: the delegator's task. */
export type Delegation = Omit<Partial<TaskDraft>, 'parent'> & { agent: string; under?: string }

/** Judges: a model, which speaks through the service, and an agent. */
export const MODEL: Judge = { kind: 'model', name: 'wise' }
export const REVIEWER: Judge = { kind: 'agent', name: 'rev' }

type OfType<T extends TaskEffect['type']> = Extract<TaskEffect, { type: T }>

export function createWorld(given: Partial<TaskSettings> = {}) {
  const settings: TaskSettings = { ...DEFAULT_TASK_SETTINGS, ...given }
  const tasks = new Map<string, Task>()
  const requests = new Map<string, { task: string; awaits: boolean; expiresAt: number | null }>()
  const breakers = new Map<string, Breaker>()
  const effects: TaskEffect[] = []
  const keys = new Set<string>()
  const states = new Set<TaskState>()
  /** The tasks that have ended, in order. */
  const ended: string[] = []
  let outside: WithKey<TaskOutsideEffect>[] = []
  let now = 1_000_000
  let onEffect: (effect: TaskEffect, task: string) => void = () => {}

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
    if (isEnd(reduced.state.state) && !isEnd(task.state)) ended.push(task.id)
    for (const effect of reduced.effects) {
      effects.push(effect)
      carryOut(effect, task.id)
      onEffect(effect, task.id)
    }
    return reduced
  }

  function carryOut(effect: TaskEffect, task: string) {
    switch (effect.type) {
      case 'ask_person':
        requests.set(effect.question, { ...effect, task })
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
        if (keys.has(effect.key)) throw new Error(`${effect.key} stands for two effects`)
        keys.add(effect.key)
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

  /** The timer that is due first. */
  function nextTimer() {
    const timers = [...tasks.values()].flatMap((task) =>
      TASK_TIMERS.flatMap((kind) => ({ task: task.id, kind, at: timerOf(task, kind) ?? Infinity })),
    )
    const next = timers.toSorted((a, b) => a.at - b.at)[0]
    return next === undefined || next.at === Infinity ? undefined : next
  }

  function fireNext(until: number): boolean {
    const next = nextTimer()
    if (next === undefined || next.at > until) return false
    now = Math.max(now, next.at)
    tell(tasks.get(next.task)!, ON_DUE[next.kind])
    if (timerOf(tasks.get(next.task)!, next.kind) === next.at) throw new Error(`${next.kind} changed nothing`)
    return true
  }

  return {
    settings,
    tasks,
    nextTimer,
    requests,
    effects,
    states,
    ended,
    breakers,
    childrenOf,
    delegate,
    get now() {
      return now
    },
    set now(at: number) {
      now = Math.max(now, at)
    },
    on(listen: (effect: TaskEffect, task: string) => void) {
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
    sends: (kind: string) =>
      effects.filter((effect): effect is OfType<'send'> => effect.type === 'send' && effect.kind === kind),
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
