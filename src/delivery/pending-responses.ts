import { renderRemark } from '../protocol/response.ts'
import type { CommandResponse } from './listener.ts'

type Response = Pick<CommandResponse, 'block' | 'wakes'>

/** Responses to an agent's commands that wait for its next turn. */
export interface PendingResponses {
  /** Resolves when the response reached the agent; at once for one that the agent need not be woken for. */
  add(response: Response): Promise<void>
  /** Whether the agent waits for one of them. */
  areAwaited(): boolean
  /** Takes the oldest ones, as many as fit into one turn. */
  take(): ResponsesOfTurn
}

/** Responses handed over in one turn. Exactly one of the three methods is called, once. */
export interface ResponsesOfTurn {
  readonly blocks: readonly string[]
  arrived(): void
  /** They surely didn't arrive. */
  putBack(): void
  /** Without evidence: they are handed over again, at most TRIES times. */
  unknown(): void
}

interface PendingResponse extends Response {
  arrived(): void
  /** How often it was handed over without evidence that it arrived. */
  tries: number
  /** How many commands it answers. */
  commands: number
}

const TRIES = 3
const TURN_BYTES = 50_000
/** An agent may send many commands before its next turn; beyond these limits it only learns how many there were. */
const LIMITS = { confirmations: 20, awaited: 100 }

export function createPendingResponses(): PendingResponses {
  let pending: PendingResponse[] = []
  /** Commands whose confirmations were dropped for newer ones. */
  let dropped = 0
  /** Callbacks of awaited responses that there was no room for. */
  let overflow: (() => void)[] = []

  const count = (wakes: boolean) => pending.filter((response) => response.wakes === wakes).length

  function addConfirmation(response: Response) {
    pending.push({ ...response, arrived() {}, tries: 0, commands: 1 })
    while (count(false) > LIMITS.confirmations) {
      const oldest = pending.findIndex(({ wakes }) => !wakes)
      dropped += pending.splice(oldest, 1)[0]!.commands
    }
  }

  function summarizeDropped(): PendingResponse[] {
    if (dropped === 0) return []
    const block = renderRemark(`Answered as well, before these: ${counted(dropped)}`)
    const summary = { block, wakes: false, arrived() {}, tries: 0, commands: dropped }
    dropped = 0
    return [summary]
  }

  function summarizeOverflow(): PendingResponse[] {
    if (overflow.length === 0 || pending.length > 0) return []
    const callbacks = overflow
    overflow = []
    const much = `${counted(callbacks.length)}, too many at once to be shown`
    const block = renderRemark(`Answered as well: ${much}. Where you need an answer, ask again.`)
    const arrived = () => {
      for (const callback of callbacks) callback()
    }
    return [{ block, wakes: true, arrived, tries: 0, commands: callbacks.length }]
  }

  function takeOldest(): PendingResponse[] {
    let bytes = 0
    const end = pending.findIndex(({ block }, index) => {
      bytes += Buffer.byteLength(block)
      return index > 0 && bytes > TURN_BYTES
    })
    return pending.splice(0, end < 0 ? pending.length : end)
  }

  return {
    areAwaited: () => overflow.length > 0 || pending.some(({ wakes }) => wakes),
    add(response) {
      if (!response.wakes) {
        addConfirmation(response)
        return Promise.resolve()
      }
      return new Promise((resolve) => {
        if (count(true) >= LIMITS.awaited) overflow.push(resolve)
        else pending.push({ ...response, arrived: resolve, tries: 0, commands: 1 })
      })
    },
    take() {
      const taken = [...summarizeDropped(), ...takeOldest(), ...summarizeOverflow()]
      return {
        blocks: taken.map(({ block }) => block),
        arrived() {
          for (const response of taken) response.arrived()
        },
        putBack() {
          pending = [...taken, ...pending]
        },
        unknown() {
          for (const response of taken) response.tries += 1
          // Resolve those given up, too: the listener would otherwise wait for them for ever.
          for (const response of taken.filter(({ tries }) => tries >= TRIES)) response.arrived()
          pending = [...taken.filter(({ tries }) => tries < TRIES), ...pending]
        },
      }
    },
  }
}

function counted(commands: number): string {
  return commands === 1 ? '1 more command' : `${commands} more commands`
}
