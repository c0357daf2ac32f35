/** Simulates a bad team: agents forget, crash, repeat, reorder and lie, and people answer late or never. */

import type {
  TaskEvent,
  TaskOutsideEffect,
  TaskStoreEffect,
  WithKey,
} from '../../../src/tasks/core/events-and-effects.ts'
import { isEnd, type Task } from '../../../src/tasks/task.ts'
import { createOracle } from './oracle.ts'
import { createWorld, MODEL, REVIEWER } from './world.ts'

const AGENTS = ['ada', 'bob', 'cyd', 'dee', 'eve']
const LIMIT = 20_000

/** A small, fast and deterministic random generator. */
function createDice(seed: number) {
  let state = seed | 0
  const roll = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    chance: (probability: number) => roll() < probability,
    below: (limit: number) => Math.floor(roll() * limit),
    pick: <T>(items: readonly T[]): T => items[Math.floor(roll() * items.length)]!,
  }
}

export interface Temper {
  /** Probability that a message is not taken, a check not run, or a question not answered. */
  silence: number
  /** Probability of a repeated event. */
  doubling: number
  /** Probability of a crash between a commit and its effects. */
  crash: number
  /** Probability of an event from the wrong sender. */
  garbage: number
}

export function play(seed: number, temper: Temper) {
  const dice = createDice(seed)
  const world = createWorld({
    maxDepth: 4,
    maxDelegations: 3,
    maxQuestions: 6,
    maxFollowUps: 2,
    breaker: { failures: 4, pauseMs: 60_000 },
  })
  const oracle = createOracle(world)
  const agenda: { at: number; act: () => void }[] = []
  const carried = new Set<string>()
  let names = 0
  let steps = 0
  let restarts = 0

  const fresh = (kind: string) => `${kind}_${++names}`
  const later = (seconds: number, act: () => void) => {
    agenda.push({ at: world.now + dice.below(seconds * 1000), act })
  }

  /** One transaction: the event and its effects in the store. A crash may follow. */
  function say(id: string, event: TaskEvent, alsoStore: () => void = () => {}) {
    oracle.touch(id)
    if (world.say(id, event).ok) {
      if (event.type === 'approval_decided' && /approved|modified/.test(event.verdict)) {
        oracle.perform(event.question)
      }
      alsoStore()
    }
    afterCommit()
  }

  function sayLater(seconds: number, id: string, event: TaskEvent) {
    const act = () => void say(id, event)
    later(seconds, act)
    if (dice.chance(temper.doubling)) later(seconds * 3, act)
  }

  function afterCommit() {
    oracle.check()
    if (dice.chance(temper.crash)) {
      restarts++
      carried.clear()
      world.restart()
    }
    for (const effect of world.takeOutside()) carryOut(effect)
  }

  function carryOut(effect: WithKey<TaskOutsideEffect>) {
    if (carried.has(effect.key)) throw new Error(`${effect.key} was carried out twice`)
    carried.add(effect.key)
    const { task: id } = effect
    if (effect.type === 'start_agent') {
      if (!dice.chance(temper.silence / 3)) return
      const recoverable = dice.chance(0.7)
      sayLater(5, id, { type: 'worker_unreachable', by: effect.agent, why: 'no terminal', recoverable })
    } else if (effect.type === 'interrupt_agent') {
      sayLater(2, id, { type: 'interrupted', interrupt: effect.interrupt })
    } else if (!dice.chance(temper.silence)) {
      const { claim } = effect
      const judged = effect.type === 'run_judge'
      const results: TaskEvent[] = judged
        ? [
            { type: 'judged', by: 'orchestrator', claim, completed: true, reason: 'fine' },
            { type: 'judged', by: 'orchestrator', claim, completed: false, reason: 'half of it' },
            { type: 'validation_gave_up', claim, why: 'the model is away' },
          ]
        : [
            { type: 'checks_passed', claim, evidence: 'exit 0' },
            { type: 'checks_failed', claim, evidence: 'exit 1' },
            { type: 'validation_gave_up', claim, why: 'no such command' },
          ]
      sayLater(30, id, dice.pick(results))
    }
  }

  world.on((effect, task) => {
    oracle.see(effect, task)
    if (effect.type === 'send') onMail(effect, task)
    if (effect.type === 'ask_person' && effect.awaits) onRequest(task, effect.question, effect.expiresAt)
  })

  function onMail({ kind, to, wake }: Extract<TaskStoreEffect, { type: 'send' }>, task: string) {
    if (dice.chance(temper.garbage)) later(60, garbage)
    if (dice.chance(0.02)) later(200, () => stepIn(task))
    if (to === 'operator' || !wake) return
    if (dice.chance(temper.silence / 2)) return
    later(20, () => (kind === 'review' ? review(to, task) : takeTurn(to, task)))
  }

  /** The reviewer judges the right or another claim, maybe twice, forgets it, or exits. */
  function review(by: string, id: string) {
    sayLater(1, id, { type: 'review_taken', by })
    const claim = (world.task(id).claim?.number ?? 1) - (dice.chance(temper.garbage) ? 1 : 0)
    const completed = dice.chance(0.5)
    if (dice.chance(0.6)) sayLater(30, id, { type: 'judged', by, claim, completed, reason: 'I looked' })
    if (dice.chance(0.05)) sayLater(30, id, { type: 'review_lost', by, why: 'signal 9' })
    sayLater(60, id, { type: 'review_turn_ended', by, lastWords: 'looks good' })
  }

  /** The agent reads a message about `about`: its own task, or one of a child. */
  function takeTurn(agent: string, about: string) {
    const subject = world.task(about)
    const own = subject.agent === agent ? subject : subject.parent && world.task(subject.parent)
    if (own && own.agent === agent) {
      sayLater(1, own.id, { type: 'acknowledged', by: agent })
      if (dice.chance(0.9)) sayLater(2, own.id, { type: 'started', by: agent })
    }
    if (subject.delegator === agent) decideOn(agent, about)
    if (!own || own.agent !== agent) return
    const acts = dice.below(4)
    for (let act = 0; act < acts; act++) later(100, () => doSomething(agent, own.id))
    const responded = acts > 0 && dice.chance(0.5)
    sayLater(100, own.id, { type: 'turn_ended', by: agent, responded, lastWords: 'all good' })
  }

  function doSomething(agent: string, id: string) {
    const own = world.task(id)
    if (own.delegations === 0 && own.depth < 4 && dice.chance(0.5)) return delegate(own)
    const question = fresh('q')
    const acts: (() => unknown)[] = [
      () => report(agent, id, 'completed'),
      () => report(agent, id, 'completed'),
      () => report(agent, id, dice.pick(['partial', 'needs_help'])),
      () => delegate(own),
      () => delegate(own),
      () => {
        const to = dice.pick([own.delegator, ...world.childrenOf(id).map((child) => child.agent)])
        const requiresResponse = dice.chance(0.8)
        return say(id, { type: 'query_asked', by: agent, to, question, text: 'Which?', requiresResponse })
      },
      () => say(id, { type: 'user_asked', by: agent, question, text: 'From where?' }),
      () => askApproval(agent, id, question),
      () =>
        say(id, {
          type: 'extension_requested',
          by: agent,
          question,
          seconds: dice.below(900),
          reason: 'slow',
        }),
      () => say(id, { type: 'worker_exited', by: agent, why: 'signal 9' }),
      () => {},
    ]
    dice.pick(acts)()
  }

  function report(by: string, id: string, status: 'completed' | 'partial' | 'needs_help') {
    const result = dice.chance(0.1) ? ' ' : 'Found three.'
    sayLater(3, id, { type: 'reported', by, report: fresh('r'), status, result })
  }

  function delegate(own: Task) {
    for (let count = 1 + dice.below(3); count > 0; count--) {
      const more = { requiresResponse: dice.chance(0.85), maxAttempts: 1 + dice.below(4) }
      const checks = dice.chance(0.3) ? ['tests'] : []
      const judge = dice.pick([null, null, MODEL, REVIEWER, { kind: 'agent', name: 'ada' } as const])
      const child = world.delegate({ agent: dice.pick(AGENTS), under: own.id, checks, judge, ...more })
      if ('id' in child) oracle.delegated(child)
      afterCommit()
    }
  }

  function askApproval(by: string, id: string, question: string) {
    // The rules hold the command, and the task learns that in the same transaction.
    const expiresAt = world.now + 72 * 3600_000
    say(id, { type: 'approval_asked', by, question, text: 'May I delete it?' }, () => {
      world.requests.set(question, { task: id, awaits: true, expiresAt })
      onRequest(id, question, expiresAt)
    })
  }

  /** The parent, or a person in its place, answers a child. */
  function decideOn(by: string, id: string) {
    const { questions } = world.task(id)
    const question = questions.length > 0 && dice.chance(0.7) ? dice.pick(questions).id : id
    sayLater(
      30,
      id,
      dice.pick<TaskEvent>([
        { type: 'answered', by, question, answer: dice.chance(0.9) ? 'The cheap one' : '  ' },
        { type: 'answered', by, question, answer: 'The cheap one' },
        { type: 'followed_up', by, text: 'Look again' },
        { type: 'extension_granted', by, question },
        { type: 'extension_refused', by, question, reason: 'no' },
        { type: 'settled', by, as: dice.pick(['completed', 'failed', 'skipped']), reason: 'good enough' },
        { type: 'cancelled', by, reason: 'not needed' },
      ]),
    )
  }

  /** A request to a person ends: answered, decided or expired. */
  function onRequest(id: string, question: string, expiresAt: number | null) {
    const kindOf = () => world.task(id).questions.find((open) => open.id === question)?.kind
    agenda.push({
      at: expiresAt!,
      act: () => {
        if (!world.requests.delete(question)) return
        const expiry: TaskEvent =
          kindOf() === 'approval'
            ? { type: 'approval_decided', by: 'orchestrator', question, verdict: 'expired', text: 'decided' }
            : { type: 'question_expired', question }
        say(id, expiry)
      },
    })
    if (dice.chance(temper.silence)) return
    const answers = dice.chance(temper.doubling) ? 2 : 1
    for (let count = 0; count < answers; count++) later(3600, () => answerRequest(id, question, kindOf()))
  }

  function answerRequest(id: string, question: string, kind: string | undefined) {
    const by = 'operator'
    if (kind === 'approval') {
      const verdict = dice.pick(['approved', 'modified', 'rejected'] as const)
      if (verdict !== 'rejected') oracle.approve(question)
      return say(id, { type: 'approval_decided', by, question, verdict, text: 'decided' }, () =>
        world.requests.delete(question),
      )
    }
    const event: TaskEvent =
      kind === 'takeover'
        ? dice.pick<TaskEvent>([
            { type: 'reported', by, report: fresh('r'), status: 'completed', result: 'I did it' },
            { type: 'followed_up', by, text: 'You do it' },
          ])
        : kind === 'extension'
          ? { type: 'extension_granted', by, question }
          : { type: 'answered', by, question, answer: dice.chance(0.9) ? 'LAX' : '' }
    say(id, event, () => world.requests.delete(question))
  }

  function stepIn(id: string) {
    const by = 'operator'
    const act = dice.below(3)
    if (act === 0) say(id, { type: 'taken_over', by })
    if (act === 1) say(id, { type: 'cancelled', by, reason: 'stop' })
    if (act === 2) {
      say(id, { type: 'held', by, reason: 'stop --all' })
      sayLater(5000, id, { type: 'released', by })
    }
  }

  /** Events of wrong senders or with invented ids: refused, or at least harmless. */
  function garbage() {
    const id = dice.pick([...world.tasks.keys()])
    const task = world.task(id)
    const by = dice.pick([...AGENTS, 'orchestrator'].filter((name) => name !== task.delegator))
    const question = dice.pick([...task.questions.map((open) => open.id), ...task.seen, 'q_0', id])
    const claim = dice.below(4)
    const event = dice.pick<TaskEvent>([
      { type: 'approval_decided', by, question, verdict: 'approved', text: 'decided' },
      { type: 'approval_decided', by, question, verdict: 'modified', text: 'decided' },
      { type: 'question_expired', question: 'q_0' },
      { type: 'delegated' },
      { type: 'ack_timed_out' },
      { type: 'deadline_passed' },
      { type: 'retry_due' },
      { type: 'wait_timed_out' },
      { type: 'validation_timed_out' },
      { type: 'checks_passed', claim: claim + 100, evidence: 'ok' },
      { type: 'judged', by: 'dee', claim, completed: true, reason: 'mine now' },
      { type: 'judged', by: 'rev', claim: claim + 100, completed: true, reason: 'late' },
      { type: 'interrupted', interrupt: 77 },
      { type: 'child_changed', child: 'task_999' },
      { type: 'released', by: 'operator' },
      { type: 'followed_up', by, text: 'mine now' },
      { type: 'settled', by, as: 'completed', reason: 'mine now' },
      { type: 'taken_over', by },
      { type: 'answered', by, question, answer: 'no' },
    ])
    const { state } = task
    say(id, event)
    if (isEnd(state) && world.task(id).state !== state) throw new Error(`${id} left ${state}`)
  }

  function run() {
    for (let roots = 1 + dice.below(3); roots > 0; roots--) {
      const root = world.delegate({
        agent: dice.pick(AGENTS),
        checks: ['tests'],
        judge: dice.pick([MODEL, REVIEWER]),
      })
      if ('id' in root) oracle.delegated(root)
      afterCommit()
    }
    for (;;) {
      const next = agenda.reduce<{ at: number; act: () => void } | undefined>(
        (first, item) => (first === undefined || item.at < first.at ? item : first),
        undefined,
      )
      const timer = world.nextTimer()
      if (++steps > LIMIT) throw new Error('the team goes on for ever')
      if (timer !== undefined && (next === undefined || timer.at <= next.at)) {
        oracle.touch(timer.task)
        world.fireNext(timer.at)
        afterCommit()
      } else {
        if (next === undefined) break
        agenda.splice(agenda.indexOf(next), 1)
        world.now = next.at
        next.act()
      }
    }
    oracle.checkAll()
  }

  run()
  return { steps, restarts, tasks: [...world.tasks.values()], effects: world.effects, states: world.states }
}
