import { formatId, parseId } from '../base/ids.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import { doubtfulDeliveries, unansweredDeliveries } from '../messages/store/deliveries.ts'
import type { Arrival, Session } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'
import type { GivenAnswers } from './pending-responses.ts'

/** How far the messages to one agent came, and those of which nobody knows (C27). */
export interface Ladder {
  /** What an earlier session left in doubt is in doubt for this one. */
  begin(left: readonly number[]): void
  /** `takenBack`: by our own interrupt, out of the conversation. */
  move(ids: readonly string[], state: Arrival['state'], evidence: string, takenBack?: boolean): Promise<void>
  /** Answers share the fate of the messages that they were given with. */
  bind(ids: readonly string[], given: GivenAnswers): void
  /** Settled when all that was moved so far is on record. */
  noted(): Promise<unknown>
  /** Of how many messages nobody knows. */
  doubts(): number
  /** Looks for what was given before and never confirmed, by its id. What surely did not arrive is queued again. */
  settleDoubts(session: Session): Promise<void>
}

export interface LadderOptions {
  name: string
  store: Store
  mailboxes: Mailboxes
  /** Nothing is written any more: the next session looks for what this one left. */
  isDismissed(): boolean
  /** A delivery moved. */
  moved(): void
}

type Keys = readonly number[]

interface Doubt {
  /** That nobody knows was written down. */
  readonly isNoted: boolean
}

/** What was found of several messages alike. */
interface Step {
  readonly keys: number[]
  readonly state: Arrival['state']
  readonly evidence: string
}

export function createLadder({ name, store, mailboxes, isDismissed, moved: tell }: LadderOptions): Ladder {
  /** Messages of which nobody knows whether they are in the conversation. */
  const doubtful = new Map<number, Doubt>()
  const unproven: { keys: Keys; given: GivenAnswers }[] = []
  let lastMove: Promise<unknown> = Promise.resolve()

  async function move(keys: Keys, state: Arrival['state'], evidence: string, takenBack = false) {
    if (keys.length === 0 || isDismissed()) return
    const moved = await store
      .write((tx) => mailboxes.moved(tx, name, keys, state, evidence, takenBack))
      .catch((error: unknown) => {
        // On record it is where it was, which is wrong by now: so it is looked for.
        for (const key of keys) if (!doubtful.has(key)) doubtful.set(key, { isNoted: false })
        throw error
      })
    if (state === 'uncertain') {
      for (const key of moved) doubtful.set(key, { isNoted: true })
      // Of the others there was evidence before there was doubt.
      const proven = keys.filter((key) => !doubtful.has(key))
      settle(proven, 'submitted')
    } else settle(keys, state)
    tell()
  }

  function settle(keys: Keys, state: Exclude<Arrival['state'], 'uncertain'>) {
    for (const key of keys) {
      doubtful.delete(key)
      const index = unproven.findIndex((turn) => turn.keys.includes(key))
      const [turn] = index < 0 ? [] : unproven.splice(index, 1)
      // Absent, or taken back, with the messages that they were given with.
      if (state === 'queued') turn?.given.putBack()
      else turn?.given.arrived()
    }
  }

  /** What the agent itself acknowledged is in doubt no more. */
  async function dropAcknowledged() {
    if (doubtful.size === 0) return
    const left = new Set(await doubtfulDeliveries(store, name))
    const settled = [...doubtful.keys()].filter((key) => !left.has(key))
    settle(settled, 'read')
  }

  return {
    begin(left) {
      for (const key of left) doubtful.set(key, { isNoted: false })
    },
    move(ids, state, evidence, takenBack) {
      const moved = move(keysOf(ids), state, evidence, takenBack)
      lastMove = Promise.allSettled([lastMove, moved]).then(() => {})
      return moved
    },
    noted: () => lastMove,
    bind: (ids, given) => void unproven.push({ keys: keysOf(ids), given }),
    doubts: () => doubtful.size,
    async settleDoubts(session) {
      await dropAcknowledged()
      const keys = [...doubtful.keys()]
      const places = await session.locate(keys.map((key) => formatId('msg', key)))
      const steps = new Map<string, Step>()
      for (const [index, { at, evidence }] of places.entries()) {
        const key = keys[index]!
        const doubt = doubtful.get(key)
        // Settled meanwhile; or written down, and that it goes on is no news.
        if (doubt === undefined || (at === 'unknown' && doubt.isNoted)) continue
        if (at === 'unknown') doubtful.set(key, { isNoted: true })
        const step = steps.get(`${at} ${evidence}`) ?? { keys: [], state: WHERE[at], evidence }
        steps.set(`${at} ${evidence}`, step)
        step.keys.push(key)
      }
      for (const { keys, state, evidence } of steps.values()) await move(keys, state, evidence)
    },
  }
}

/**
 * A process may end before it wrote down what it took. Doubted on record, so that it is looked for by whoever attends
 * the process that takes up its conversation.
 */
export async function doubtUnanswered(store: Store, mailboxes: Mailboxes, agent: string): Promise<void> {
  const evidence = 'the process that took it has ended; it is looked for in the conversation'
  await store.write(async (tx) =>
    mailboxes.moved(tx, agent, await unansweredDeliveries(tx, agent), 'uncertain', evidence, true),
  )
}

const WHERE = { submitted: 'submitted', absent: 'queued', unknown: 'uncertain' } as const

function keysOf(ids: readonly string[]): number[] {
  return ids.map((id) => parseId('msg', id)).filter((key) => key !== undefined)
}
