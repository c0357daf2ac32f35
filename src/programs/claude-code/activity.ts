import type { SessionState } from '../../model/agent.ts'
import type { Dialogs } from './dialogs.ts'
import type { Status } from './status-file.ts'

/** What the program is doing, from what its hooks and its status file say. */
export interface Activity {
  readonly state: SessionState
  /** The program's own word that it is at its prompt. Only then may anything be pasted. */
  readonly isAtPrompt: boolean
  /** It says so, and it is being found out what became of its turn. */
  readonly isReturning: boolean
  /** Of the program, once it told. */
  readonly version: string
  readonly hasStatus: boolean
  heed(status: Status): Promise<void>
  /** Its SessionStart hook called. */
  started(): void
  /** It has connected to our MCP server: until then its model would be without our tools. */
  toolsGiven(): void
  turnBegan(evidence: string): void
  /** Its Stop hook called: for the engine it is idle from now on, though it is not back at its prompt yet. */
  turnEnded(evidence: string): void
  /** The Stop hook was answered with nothing. */
  turnLeft(): void
  /** How the turn ended without a Stop hook. */
  noteEnd(how: string): void
  dialogOpened(evidence: string): void
  dialogAnswered(evidence: string): void
  /** Whether it comes back to its prompt within that time. */
  comesToPrompt(withinMs: number): Promise<boolean>
  exited(): void
  close(): void
}

export interface ActivityOptions {
  /** Found again: it may be in the middle of anything, but it is not starting. */
  readonly found: boolean
  readonly dialogs: Dialogs
  changed(state: SessionState, evidence: string): void
  readStatus(): Promise<Status | undefined>
  /** Everything that was said in the turn was heard. */
  settled(): Promise<void>
  /** It is back at its prompt without a word on how its turn ended, for as long as it `isStill`. */
  endedSilently(isStill: () => boolean): Promise<void>
  atPrompt(): void
}

/** It takes a prompt no sooner after its start, though its status file says idle. */
const WARM_UP_MS = 700
/** Without a sign of its SessionStart hook, or of its MCP client. */
const LONGEST_WARM_UP_MS = 4000
/** After its Stop hook was answered, it is back at its prompt far sooner, unless another hook keeps it. */
const BACK_AT_PROMPT_MS = 3000
const LOOK_EVERY_MS = 25

export function followActivity(options: ActivityOptions): Activity {
  const { dialogs } = options
  let state: SessionState = options.found ? 'unknown' : 'initializing'
  let isAtPrompt = false
  let version = ''
  let hasStatus = false
  let isWarm = options.found
  let hasStarted = false
  let hasTools = false
  let warmUp: NodeJS.Timeout | undefined
  let backAtPrompt: NodeJS.Timeout | undefined
  let endedBy: string | undefined
  /** When a hook told more than the status file had said until then. */
  let told = { at: 0, elapsed: 0 }
  /** Every piece of news counts one, so that what was learnt before an await may be found outdated after it. */
  let news = 0
  /** What of it said that it is at its prompt. */
  let returning: number | undefined

  function become(next: SessionState, evidence: string) {
    if (state === next || state === 'exited') return
    state = next
    options.changed(next, evidence)
  }

  function tell() {
    news += 1
    told = { at: Date.now(), elapsed: performance.now() }
    clearTimeout(backAtPrompt)
  }

  /** By the clock as it is now: what is written after it was set back bears an earlier time. */
  function toldAt(): number {
    return Math.min(told.at, Math.ceil(Date.now() - (performance.now() - told.elapsed)))
  }

  async function heed(read: Status) {
    const { status, waitingFor, statusUpdatedAt } = read
    if (status === undefined) return
    hasStatus = true
    version = read.version
    if (statusUpdatedAt < toldAt()) return
    // Read once more, it is no news.
    if (status === 'idle' && returning === news) return
    news += 1
    if (status === 'idle') return await returnToPrompt()
    isAtPrompt = false
    if (status === 'waiting') return become('waiting_input', `it waits: ${waitingFor ?? 'a dialog is open'}`)
    // The dialog was answered in the pane.
    if (state === 'waiting_input') dialogs.settleAll()
    if (status === 'busy') become('busy', 'its status file says busy')
    else become('unknown', `its status file says ${status}`)
  }

  async function returnToPrompt() {
    if (!isWarm) {
      warmUp ??= setTimeout(warm, LONGEST_WARM_UP_MS)
      return
    }
    const known = news
    const isStill = () => news === known && endedBy === undefined
    returning = known
    dialogs.settleAll()
    try {
      // What was said in the turn comes before the end of it.
      await options.settled()
      if (isStill()) await options.endedSilently(isStill)
    } finally {
      if (returning === known) returning = undefined
    }
    if (news !== known) return
    clearTimeout(backAtPrompt)
    isAtPrompt = true
    become('idle', `its status file says idle${endedBy === undefined ? '' : `: ${endedBy}`}`)
    options.atPrompt()
  }

  function warmUpWithin(ms: number) {
    if (isWarm) return
    clearTimeout(warmUp)
    warmUp = setTimeout(warm, ms)
  }

  function warm() {
    isWarm = true
    void options.readStatus().then((status) => status && heed(status))
  }

  return {
    get state() {
      return state
    },
    get isAtPrompt() {
      return isAtPrompt
    },
    get isReturning() {
      return returning === news
    },
    get version() {
      return version
    },
    get hasStatus() {
      return hasStatus
    },
    heed,
    started() {
      hasStarted = true
      warmUpWithin(hasTools ? WARM_UP_MS : LONGEST_WARM_UP_MS)
    },
    toolsGiven() {
      hasTools = true
      if (hasStarted) warmUpWithin(WARM_UP_MS)
    },
    turnBegan(evidence) {
      tell()
      isAtPrompt = false
      isWarm = true
      endedBy = undefined
      become('busy', evidence)
    },
    turnEnded(evidence) {
      tell()
      endedBy = 'its turn ended'
      become('idle', evidence)
    },
    turnLeft() {
      if (!hasStatus) isAtPrompt = true
      const known = news
      backAtPrompt = setTimeout(() => {
        if (news === known && !isAtPrompt) become('busy', 'it goes on though its turn had ended')
      }, BACK_AT_PROMPT_MS)
    },
    noteEnd(how) {
      endedBy = how
      if (!hasStatus) void returnToPrompt()
    },
    dialogOpened(evidence) {
      tell()
      isAtPrompt = false
      become('waiting_input', evidence)
    },
    dialogAnswered(evidence) {
      if (dialogs.isOpen || state !== 'waiting_input') return
      tell()
      become('busy', evidence)
    },
    async comesToPrompt(withinMs) {
      const deadline = performance.now() + withinMs
      while (state === 'idle' && !isAtPrompt && performance.now() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
      }
      return state === 'idle' && isAtPrompt
    },
    exited() {
      news += 1
      isAtPrompt = false
      state = 'exited'
    },
    close() {
      news += 1
      clearTimeout(warmUp)
      clearTimeout(backAtPrompt)
    },
  }
}
