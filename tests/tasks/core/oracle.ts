/** Invariants that must hold after every transaction, computed independently of the reducer. */

import { type TaskEffect, timerOf } from '../../../src/tasks/core/events-and-effects.ts'
import { isAwaited } from '../../../src/tasks/core/snapshot.ts'
import { isEnd, TASK_TIMERS, type Task } from '../../../src/tasks/task.ts'
import type { World } from './world.ts'

export function createOracle(world: World) {
  const openChildren = new Map<string, Set<string>>()
  const expectedWakes = new Map<string, number>()
  const wakes = new Map<string, number>()
  const approved = new Set<string>()
  const performed = new Set<string>()
  const touched = new Set<string>()

  const fail = (message: string): never => {
    throw new Error(message)
  }
  const add = (counts: Map<string, number>, id: string) => counts.set(id, (counts.get(id) ?? 0) + 1)

  function see(effect: TaskEffect, task: string) {
    touched.add(task)
    if (effect.type === 'dispatch') touched.add(effect.task)
    if (effect.type === 'send' && effect.kind === 'children_ended') add(wakes, task)
  }

  /** A task accepted an approval, so its action is performed. */
  function perform(question: string) {
    if (!approved.has(question)) fail(`${question} was performed and nobody approved it`)
    if (performed.has(question)) fail(`${question} was performed twice`)
    performed.add(question)
  }

  /** An agent, a person or a timer will move the task on. */
  function isWaitedOn(task: Task): boolean {
    if (task.held !== null || TASK_TIMERS.some((kind) => timerOf(task, kind) !== undefined)) return true
    if (task.questions.some(({ id, to }) => to === 'operator' && world.requests.has(id))) return true
    return world.childrenOf(task.id).some(isAwaited)
  }

  function checkTask(task: Task) {
    const id = `${task.id} (${task.state})`
    if (!isEnd(task.state)) {
      if (!isWaitedOn(task)) fail(`${id} waits for nobody`)
      return
    }
    if (task.reason === null || task.endedAt === null) fail(`${id} ended without a reason`)
    const ends = world.ended.filter((ended) => ended === task.id).length
    if (ends !== 1) fail(`${id} ended ${ends} times`)
    for (const [question, { task: asker, awaits }] of world.requests) {
      if (asker === task.id && awaits) fail(`${id} ended and left ${question} open`)
    }
    const below = world.childrenOf(task.id).filter((child) => !isEnd(child.state))
    for (const child of below) {
      if (child.requiresResponse) fail(`${child.id} is an orphan of ${id}`)
      if (task.state === 'cancelled') fail(`${child.id} survived the cancellation of ${id}`)
    }
  }

  /** A parent is woken once when all awaited children have ended. */
  function checkWakes() {
    for (const [parent, open] of openChildren) {
      const isDone = [...open].every((id) => isEnd(world.task(id).state))
      if (open.size > 0 && isDone) {
        // A parent that has ended is not woken: its end cancelled the children.
        if (
          world.task(parent).endedAt === null ||
          (wakes.get(parent) ?? 0) > (expectedWakes.get(parent) ?? 0)
        ) {
          add(expectedWakes, parent)
        }
        open.clear()
      }
      const [is, wanted] = [wakes.get(parent) ?? 0, expectedWakes.get(parent) ?? 0]
      if (is !== wanted) fail(`${parent} was woken ${is} times, not ${wanted}`)
    }
  }

  return {
    see,
    perform,
    approve: (question: string) => approved.add(question),
    delegated(task: Task) {
      touched.add(task.id)
      if (task.parent === null || !task.requiresResponse) return
      const open = openChildren.get(task.parent) ?? new Set()
      openChildren.set(task.parent, open.add(task.id))
    },
    touch: (id: string) => touched.add(id),
    check() {
      checkWakes()
      for (const id of touched) {
        const task = world.task(id)
        checkTask(task)
        if (task.parent !== null) checkTask(world.task(task.parent))
      }
      touched.clear()
    },
    checkAll() {
      for (const task of world.tasks.values()) {
        if (!isEnd(task.state)) fail(`${task.id} never ended: ${JSON.stringify(task)}`)
        checkTask(task)
      }
    },
  }
}
