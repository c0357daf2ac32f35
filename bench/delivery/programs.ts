/** Deliveries to the real agent programs, with all known disturbances. */
import { setTimeout as sleep } from 'node:timers/promises'
import { AGENTS } from '../../scripts/install-agents.ts'
import { HOSTILE, LARGE } from './messages.ts'
import { startProgress } from './progress.ts'
import { milliseconds, quantile } from './quantile.ts'
import { count } from './raw.ts'
import { openRealScene, type RealProgram, type RealScene, RUN, WORK } from './real.ts'
import { idle } from './scene.ts'
import type { Tally } from './tally.ts'

/** The rules for `@name` in docs/agents.md, repeated. */
const named = (text: string) => text.replaceAll(' @', ' \\@')
const NAMED = { note: '`@name` is given as `\\@name`', apply: named }
const UNTABBED = {
  note: `its input box turns tabs into four spaces; ${NAMED.note}`,
  apply: (text: string) => named(text).replaceAll('\t', '    '),
}

export const PROGRAMS: readonly RealProgram[] = [
  { agent: 'claude-code', program: 'claude-code', habit: UNTABBED },
  { agent: 'claude-code-2.1.197', program: 'claude-code', habit: UNTABBED },
  { agent: 'codex', program: 'codex' },
  { agent: 'gemini', program: 'gemini', habit: NAMED },
  { agent: 'opencode', program: 'opencode' },
]

export interface ProgramResult {
  readonly name: string
  readonly version: string
  /** Why figures are missing, and how the program itself changes texts. */
  readonly problem?: string
  readonly tally?: Tally
  /** From the sender's text to the model's request, for one message to an idle program. */
  readonly latencies?: readonly number[]
}

/** Long enough for a message to arrive if nothing delays it. */
const WAIT_MS = 600
const ARRIVES_MS = 60_000
const PROBLEMS = 3
/** Counted but not timed: programs are still starting when they take their first turn. */
const WARM_UP = 3

type Step = (scene: RealScene) => Promise<{ latency?: number; answers?: number }>

const plain = (content: string): Step => {
  return async (scene) => {
    const [latency] = await scene.arrived(await scene.say(content), ARRIVES_MS)
    return { latency: latency! }
  }
}

const large: Step = async (scene) => {
  await scene.arrived(await scene.say(LARGE), ARRIVES_MS)
  return {}
}

const whileBusy: Step = async (scene) => {
  const first = await scene.say(WORK)
  await scene.arrived(first, ARRIVES_MS)
  const second = await scene.say('While you work.', 'And once more.')
  await scene.arrived(second, ARRIVES_MS)
  return {}
}

const beforeDialog: Step = async (scene) => {
  await scene.arrived(await scene.say(RUN), ARRIVES_MS)
  const approve = await scene.dialog()
  const second = await scene.say('While you wait for leave.')
  await sleep(WAIT_MS)
  await approve()
  await scene.arrived(second, ARRIVES_MS)
  return { answers: 1 }
}

const besideDraft: Step = async (scene) => {
  const draft = 'half a thought'
  await scene.tmux('send-keys', '-t', scene.pane, '-l', draft)
  await sleep(WAIT_MS / 2)
  const said = await scene.say('While someone types.')
  await sleep(WAIT_MS)
  // Messages that don't come by keyboard may have arrived already, and the draft stays.
  await scene.tmux('send-keys', '-N', String(draft.length), '-t', scene.pane, 'BSpace')
  await scene.arrived(said, ARRIVES_MS)
  return {}
}

const atOnce: Step = async (scene) => {
  await scene.arrived(await scene.say('One of three.', 'Two of three.', 'Three of three.'), ARRIVES_MS)
  return {}
}

/** About two hundred deliveries: each hostile text twice, the rest in between. */
function* steps(deliveries: number): Generator<Step> {
  const hostile = Object.values(HOSTILE)
  const special = [whileBusy, beforeDialog, besideDraft, atOnce]
  for (let number = 0; ; number++) {
    if (number % 8 === 3) yield special[((number - 3) / 8) % special.length]!
    else if (number % 6 === 1) yield plain(hostile[((number - 1) / 6) % hostile.length]!)
    else if (number % Math.ceil(deliveries / 4) === 20) yield large
    else yield plain(`Please look at the build, number ${number}.`)
  }
}

export async function runProgram(which: RealProgram, deliveries: number): Promise<ProgramResult> {
  const { version } = AGENTS[which.agent]
  const name = which.program
  const progress = startProgress(`${name} ${version}`, deliveries)
  let scene: RealScene
  try {
    scene = await openRealScene(which)
  } catch (error) {
    return { name, version, problem: reasonOf(error) }
  }
  const latencies: number[] = []
  const problems: string[] = []
  let answers = 0
  try {
    for (const step of steps(deliveries)) {
      if (scene.sent.length >= deliveries) break
      try {
        await idle(scene.child, ['Receiver'], ARRIVES_MS)
        const done = await step(scene)
        if (done.latency !== undefined && scene.sent.length > WARM_UP) latencies.push(done.latency)
        answers += done.answers ?? 0
      } catch (error) {
        problems.push(reasonOf(error))
        const screen = await scene.child.ask<string>('screen', 'Receiver').catch(() => '')
        process.stderr.write(`\n${name}: ${reasonOf(error)}\n${screen}\n`)
        if (problems.length === PROBLEMS) break
      }
      progress.at(Math.min(scene.sent.length, deliveries), `p50 ${milliseconds(quantile(latencies, 0.5))}`)
    }
    progress.end()
    const counted = await count(scene, answers, which.habit?.apply)
    const notes = [...new Set(problems), ...(which.habit === undefined ? [] : [which.habit.note])]
    return { name, version, tally: counted, latencies, problem: notes.join('; ') }
  } catch (error) {
    return { name, version, problem: reasonOf(error) }
  } finally {
    await scene.close()
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.split('\n', 1)[0]! : String(error)
}
