/** Deliveries to a raw-mode receiver through the whole product, alternating with two other ways to deliver. */
import { setTimeout as sleep } from 'node:timers/promises'
import { CONDITIONS, PER_THOUSAND } from './conditions.ts'
import { HOSTILE } from './messages.ts'
import { startProgress } from './progress.ts'
import { milliseconds, quantile } from './quantile.ts'
import { idle, openScene, type Scene } from './scene.ts'
import { faults, readTurn, type Tally, tally } from './tally.ts'

export interface RawResult {
  readonly tally: Tally
  /** Time of a message to a waiting receiver without obstacles. */
  readonly latencies: readonly number[]
  readonly direct: readonly number[]
  readonly polled: readonly number[]
  readonly stages: Stages
  readonly conditions: Readonly<Record<string, number>>
}

/** Breakdown of the time, in milliseconds. */
export interface Stages {
  heard: number[]
  given: number[]
  submitted: number[]
}

export interface RawOptions {
  deliveries: number
  polls: number
}

/** The first deliveries also compile the code. */
const WARM_UP = 100
const ROUNDS = 10
const FAULTS_SHOWN = 5
/** One of this many texts is hostile; hostile texts take no longer than others and are timed with them. */
const HOSTILE_EVERY = 8

export async function runRaw({ deliveries, polls }: RawOptions): Promise<RawResult> {
  const progress = startProgress('raw-mode receiver', deliveries)
  const scenes: Scene[] = []
  try {
    const product = await openScene({ carrier: 'service.ts' })
    scenes.push(product)
    const direct = await openScene({ carrier: 'direct.ts' })
    scenes.push(direct)
    const naive = await openScene({ carrier: 'poll.ts' })
    scenes.push(naive)
    for (const scene of [product, direct]) await deliverOneByOne(scene, WARM_UP)
    const timed: string[] = []
    const latencies: number[] = []
    const directly: number[] = []
    const polled: number[] = []
    const conditions: Record<string, number> = {}
    let answers = 0
    // Alternate, so that other load on the machine affects all of them.
    for (let round = 1; round <= ROUNDS; round++) {
      const goal = Math.round((deliveries * round) / ROUNDS)
      const order = shuffled(conditionsOf(deliveries / ROUNDS))
      const share = Math.ceil((goal - product.sent.length) / (order.length + 1))
      for (let step = 0; product.sent.length < goal; step++) {
        const count =
          step < order.length ? Math.min(share, goal - product.sent.length) : goal - product.sent.length
        for (const { mark, ms } of await deliverOneByOne(product, count)) {
          timed.push(mark)
          latencies.push(ms)
        }
        const condition = order[step]
        if (condition !== undefined && product.sent.length < goal) {
          answers += (await CONDITIONS[condition]!(product)).answers
          conditions[condition] = (conditions[condition] ?? 0) + 1
          await idle(product.child, ['Receiver'])
        }
        progress.at(product.sent.length, `p50 ${milliseconds(quantile(latencies, 0.5))}`)
      }
      directly.push(
        ...(await deliverOneByOne(direct, Math.ceil(deliveries / ROUNDS / 5))).map((one) => one.ms),
      )
      polled.push(...(await deliverByPoll(naive, Math.ceil(polls / ROUNDS))))
    }
    progress.end()
    const result = await count(product, answers)
    return {
      tally: result,
      latencies,
      direct: directly,
      polled,
      conditions,
      stages: await stagesOf(product, timed),
    }
  } finally {
    for (const scene of scenes) await scene.close()
  }
}

export async function deliverOneByOne(scene: Scene, count: number): Promise<{ mark: string; ms: number }[]> {
  const delivered: { mark: string; ms: number }[] = []
  const hostile = Object.values(HOSTILE)
  for (let index = 0; index < count; index++) {
    // At a random distance from the previous message, so as not to hit the same phase each time.
    await sleep(2 + Math.random() * 8)
    const number = scene.sent.length
    const content =
      number % HOSTILE_EVERY === 0
        ? hostile[(number / HOSTILE_EVERY) % hostile.length]!
        : `Please look at the build, number ${number}.`
    const said = await scene.say(content)
    const [ms] = await scene.arrived(said)
    delivered.push({ mark: said.marks[0]!, ms: ms! })
  }
  return delivered
}

async function deliverByPoll(scene: Scene, count: number): Promise<number[]> {
  const latencies: number[] = []
  await scene.child.ask('poll', true)
  for (let index = 0; index < count; index++) {
    await sleep(Math.random() * 500)
    const [ms] = await scene.arrived(await scene.say(`Please look at the build, number ${index}.`))
    latencies.push(ms!)
  }
  await scene.child.ask('poll', false)
  return latencies
}

/** Compares the receiver's record with what was sent and with what the product reports. */
export async function count(scene: Scene, answers: number, same = (text: string) => text): Promise<Tally> {
  // Duplicates, if any, would arrive now.
  await sleep(2000)
  const [doubts] = await scene.child.ask<[{ count: number }]>('rows', {
    sql: `SELECT COUNT(DISTINCT text) AS count FROM audit WHERE type = 'delivery.uncertain'`,
  })
  const [open] = await scene.child.ask<[{ count: number }]>('rows', {
    sql: `SELECT COUNT(*) AS count FROM deliveries WHERE recipient = 'Receiver' AND state NOT IN ('submitted', 'read')`,
  })
  if (open.count > 0) process.stderr.write(`${open.count} messages are not called submitted\n`)
  const sent = scene.sent.map((one) => ({ ...one, content: same(one.content) }))
  const got = scene.record.entries.map((one) =>
    one.text === undefined ? one : { ...one, text: same(one.text) },
  )
  for (const fault of [...faults(sent, got)].slice(0, FAULTS_SHOWN)) process.stderr.write(`${fault}\n`)
  return tally({ sent, got, answers, uncertain: Math.max(doubts.count, open.count) })
}

async function stagesOf(scene: Scene, timed: readonly string[]): Promise<Stages> {
  const inside = new Map(await scene.child.ask<[string, { heard?: number; given?: number }][]>('stages'))
  const wanted = new Set(timed)
  const stages: Stages = { heard: [], given: [], submitted: [] }
  for (const { text, ns } of scene.record.entries) {
    for (const { id, title } of text === undefined ? [] : readTurn(text).frames) {
      const { heard, given } = inside.get(id) ?? {}
      if (heard === undefined || given === undefined || !wanted.has(title)) continue
      stages.heard.push((heard - Number(scene.saidAt(title))) / 1e6)
      stages.given.push((given - heard) / 1e6)
      stages.submitted.push((Number(ns) - given) / 1e6)
    }
  }
  return stages
}

function conditionsOf(deliveries: number): string[] {
  return Object.entries(PER_THOUSAND).flatMap(([name, perThousand]) => {
    const wanted = (deliveries * perThousand) / 1000
    const whole = Math.floor(wanted) + (Math.random() < wanted % 1 ? 1 : 0)
    return Array<string>(whole).fill(name)
  })
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)
}
