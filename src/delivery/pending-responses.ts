import { renderRemark } from '../protocol/response.ts'
import type { Answer } from './listener.ts'

type Given = Pick<Answer, 'block' | 'wakes'>

/** The answers to an agent's commands, until a turn brings them. */
export interface WaitingAnswers {
  /** Resolves when it reached the agent; for one that it need not be woken for, at once. */
  add(answer: Given): Promise<void>
  /** Whether the agent waits for one of them. */
  areAwaited(): boolean
  /** The oldest, as many as fit into one turn. */
  take(): GivenAnswers
}

/** Those of one turn. What became of it is told once. */
export interface GivenAnswers {
  readonly blocks: readonly string[]
  arrived(): void
  /** They were surely not given. */
  putBack(): void
  /** Nobody knows: they come again, rather than not at all; but not for ever. */
  doubt(): void
}

interface WaitingAnswer extends Given {
  arrived(): void
  /** How often it was given without a sign that it arrived. */
  tries: number
  /** How many commands it is about. */
  stands: number
}

const TRIES = 3
const TURN_BYTES = 50_000
/** An agent may say a lot before its next turn: of what is beyond these it is only told how much it was. */
const MOST = { confirmations: 20, awaited: 100 }

export function createWaitingAnswers(): WaitingAnswers {
  let waiting: WaitingAnswer[] = []
  /** Commands whose answers gave way to newer ones. */
  let confirmed = 0
  /** For whoever waits for an answer that there was no room for. */
  let further: (() => void)[] = []

  const count = (wakes: boolean) => waiting.filter((answer) => answer.wakes === wakes).length

  function confirm(answer: Given) {
    waiting.push({ ...answer, arrived() {}, tries: 0, stands: 1 })
    while (count(false) > MOST.confirmations) {
      const oldest = waiting.findIndex(({ wakes }) => !wakes)
      confirmed += waiting.splice(oldest, 1)[0]!.stands
    }
  }

  function tallyConfirmed(): WaitingAnswer[] {
    if (confirmed === 0) return []
    const block = renderRemark(`Answered as well, before these: ${counted(confirmed)}`)
    const tally = { block, wakes: false, arrived() {}, tries: 0, stands: confirmed }
    confirmed = 0
    return [tally]
  }

  function tallyFurther(): WaitingAnswer[] {
    if (further.length === 0 || waiting.length > 0) return []
    const answered = further
    further = []
    const much = `${counted(answered.length)}, too many at once to be shown`
    const block = renderRemark(`Answered as well: ${much}. Where you need an answer, ask again.`)
    const arrived = () => {
      for (const tell of answered) tell()
    }
    return [{ block, wakes: true, arrived, tries: 0, stands: answered.length }]
  }

  function takeOldest(): WaitingAnswer[] {
    let bytes = 0
    const end = waiting.findIndex(({ block }, index) => {
      bytes += Buffer.byteLength(block)
      return index > 0 && bytes > TURN_BYTES
    })
    return waiting.splice(0, end < 0 ? waiting.length : end)
  }

  return {
    areAwaited: () => further.length > 0 || waiting.some(({ wakes }) => wakes),
    add(answer) {
      if (!answer.wakes) {
        confirm(answer)
        return Promise.resolve()
      }
      return new Promise((resolve) => {
        if (count(true) >= MOST.awaited) further.push(resolve)
        else waiting.push({ ...answer, arrived: resolve, tries: 0, stands: 1 })
      })
    },
    take() {
      const given = [...tallyConfirmed(), ...takeOldest(), ...tallyFurther()]
      return {
        blocks: given.map(({ block }) => block),
        arrived() {
          for (const answer of given) answer.arrived()
        },
        putBack() {
          waiting = [...given, ...waiting]
        },
        doubt() {
          for (const answer of given) answer.tries += 1
          // Whoever waits for one that is given up would hear nothing more of the agent.
          for (const answer of given.filter(({ tries }) => tries >= TRIES)) answer.arrived()
          waiting = [...given.filter(({ tries }) => tries < TRIES), ...waiting]
        },
      }
    },
  }
}

function counted(commands: number): string {
  return commands === 1 ? '1 more command' : `${commands} more commands`
}
