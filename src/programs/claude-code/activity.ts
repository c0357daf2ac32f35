/**
 * Derives the state of one Claude Code from its hooks and its status file. The newer of the two counts; hooks are
 * earlier, the status file also covers what has no hook.
 *
 * - initializing: from the launch until it is warm and its status file says idle. It is warm WARM_UP_MS after both its
 *   SessionStart hook and its MCP client called, at the latest after MAX_WARM_UP_MS, because a prompt that comes
 *   earlier is lost although the status file says idle.
 * - unknown: found running; the first status or hook leaves it.
 * - busy: a prompt was submitted, or the status file says so. Left by a dialog, a Stop hook, or the status idle.
 * - waiting_input: a permission dialog is open. Left by its answer (busy) or by the next status.
 * - idle: entered by the Stop hook, when the turn is over but the program is not at its prompt yet (`isAtPrompt` is
 *   false), and by the status idle (`isAtPrompt` is true). If the prompt does not follow a Stop hook within
 *   BACK_AT_PROMPT_MS, another hook made it continue: busy again.
 * - exited: final.
 */

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { SessionState } from '../../base/agent.ts'
import { isRunning } from '../../base/process.ts'
import { type FollowerLog, watchFile } from '../line-follower.ts'
import type { Dialogs } from './hooks.ts'

interface ActivityOptions {
  /** Found running: it may be in any state except starting. */
  readonly found: boolean
  readonly dialogs: Dialogs
  changed(state: SessionState, evidence: string): void
  readStatus(): Promise<ClaudeStatus | undefined>
  /** All text of the turn was processed. */
  settled(): Promise<void>
  /** The program is back at its prompt without evidence of how its turn ended, as long as `isStill` holds. */
  endedSilently(isStill: () => boolean): Promise<void>
  atPrompt(): void
}

/** The program accepts no prompt sooner after its start, although its status file says idle. */
const WARM_UP_MS = 700
/** Timeout for its SessionStart hook and its MCP client. */
const MAX_WARM_UP_MS = 4000
/** After its Stop hook it returns to its prompt far sooner, unless another hook delays it. */
const BACK_AT_PROMPT_MS = 3000
const LOOK_EVERY_MS = 25

export type ClaudeActivity = ReturnType<typeof followActivity>

/** The program's activity, derived from its hooks and its status file. */
export function followActivity(options: ActivityOptions) {
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
  /** When a hook reported something newer than the status file. */
  let reported = { at: 0, elapsed: 0 }
  /** Incremented with every event, so that facts learnt before an await can be recognised as outdated. */
  let news = 0
  /** Evidence that it is at its prompt. */
  let returning: number | undefined

  function become(next: SessionState, evidence: string) {
    if (state === next || state === 'exited') return
    state = next
    options.changed(next, evidence)
  }

  function tell() {
    news += 1
    reported = { at: Date.now(), elapsed: performance.now() }
    clearTimeout(backAtPrompt)
  }

  /** By the current clock: records written after it was set back have earlier times. */
  function reportedAt(): number {
    return Math.min(reported.at, Math.ceil(Date.now() - (performance.now() - reported.elapsed)))
  }

  async function onStatus(read: ClaudeStatus) {
    const { status, waitingFor, statusUpdatedAt } = read
    if (status === undefined) return
    hasStatus = true
    version = read.version
    if (statusUpdatedAt < reportedAt()) return
    // A repeated read is not news.
    if (status === 'idle' && returning === news) return
    news += 1
    if (status === 'idle') return await returnToPrompt()
    isAtPrompt = false
    if (status === 'waiting')
      return become('waiting_input', `it is waiting: ${waitingFor ?? 'a dialog is open'}`)
    // The dialog was answered in the pane.
    if (state === 'waiting_input') dialogs.settleAll()
    if (status === 'busy') become('busy', 'its status file says busy')
    else become('unknown', `its status file says ${status}`)
  }

  async function returnToPrompt() {
    if (!isWarm) {
      warmUp ??= setTimeout(warm, MAX_WARM_UP_MS)
      return
    }
    const known = news
    const isStill = () => news === known && endedBy === undefined
    returning = known
    dialogs.settleAll()
    try {
      // The turn's text comes before its end.
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
    void options.readStatus().then((status) => status && onStatus(status))
  }

  return {
    get state() {
      return state
    },
    /** The program itself reports that it is at its prompt. Only then may text be pasted. */
    get isAtPrompt() {
      return isAtPrompt
    },
    /** The program reports its prompt, and the end of its turn is still being determined. */
    get isReturning() {
      return returning === news
    },
    /** The program's own version. */
    get version() {
      return version
    },
    get hasStatus() {
      return hasStatus
    },
    onStatus,
    /** The SessionStart hook called. */
    started() {
      hasStarted = true
      warmUpWithin(hasTools ? WARM_UP_MS : MAX_WARM_UP_MS)
    },
    /** The program connected to our MCP server; before that its model lacks our tools. */
    toolsGiven() {
      hasTools = true
      if (hasStarted) warmUpWithin(WARM_UP_MS)
    },
    turnBegan(evidence: string) {
      tell()
      isAtPrompt = false
      isWarm = true
      endedBy = undefined
      become('busy', evidence)
    },
    /** The Stop hook called: the engine treats the agent as idle, though it is not at its prompt yet. */
    turnEnded(evidence: string) {
      tell()
      endedBy = 'its turn ended'
      become('idle', evidence)
    },
    /** The Stop hook got an empty response. */
    turnLeft() {
      if (!hasStatus) isAtPrompt = true
      const known = news
      backAtPrompt = setTimeout(() => {
        if (news === known && !isAtPrompt) become('busy', 'it continued after its turn had ended')
      }, BACK_AT_PROMPT_MS)
    },
    /** How the turn ended without a Stop hook. */
    noteEnd(how: string) {
      endedBy = how
      if (!hasStatus) void returnToPrompt()
    },
    dialogOpened(evidence: string) {
      tell()
      isAtPrompt = false
      become('waiting_input', evidence)
    },
    dialogAnswered(evidence: string) {
      if (dialogs.isOpen || state !== 'waiting_input') return
      tell()
      become('busy', evidence)
    },
    /** Whether it returns to its prompt within that time. */
    async comesToPrompt(withinMs: number): Promise<boolean> {
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

/** Claude Code's own status in `sessions/PID.json`. */
const ClaudeStatus = z.looseObject({
  sessionId: z.string(),
  /** Missing at first. Known values: idle, busy, waiting. */
  status: z.string().optional(),
  /** For example `permission prompt`, `dialog open`, `input needed`. */
  waitingFor: z.string().optional(),
  version: z.string().catch(''),
  startedAt: z.number().catch(0),
  statusUpdatedAt: z.number().catch(0),
})
type ClaudeStatus = z.output<typeof ClaudeStatus>

interface StatusFileOptions {
  readonly file: string
  onStatus(status: ClaudeStatus): void
  readonly log: FollowerLog
}

/** The file is written in place, so a read may see half of it. */
const TORN_READ_MS = 20
const TORN_READS = 10

export type StatusFile = ReturnType<typeof followStatus>

/** Reports the program's status whenever it changes, by file events. */
export function followStatus({ file, onStatus, log }: StatusFileOptions) {
  let closed = false
  let reads: Promise<unknown> = Promise.resolve()
  let wanted = false
  const events = watchFile({
    file,
    changed: () => {
      // Every time, because the file may have been replaced.
      events.attach()
      tell()
    },
    failed: (error) => log.warn({ file, err: error }, 'cannot watch the status file of an agent'),
  })
  events.attach()
  tell()

  function tell() {
    if (wanted) return
    wanted = true
    reads = reads.then(async () => {
      wanted = false
      const status = await readStatus(file)
      if (status !== undefined && !closed) onStatus(status)
    })
  }

  return {
    /** Reads it now. Undefined while there is none. */
    read: () => readStatus(file),
    close() {
      closed = true
      events.close()
    },
  }
}

/**
 * The newest file that names the session, for programs started through a wrapper. A killed program leaves its
 * last state behind, which must not be taken for the next one's.
 */
export async function findStatusFile(folder: string, sessionId: string): Promise<string | undefined> {
  const names = await readdir(folder).catch(() => [])
  let newest: { file: string; startedAt: number } | undefined
  for (const name of names) {
    const pid = /^(\d+)\.json$/.exec(name)?.[1]
    if (pid === undefined || !isRunning(Number(pid))) continue
    const file = join(folder, name)
    const status = await readStatus(file)
    if (status?.sessionId !== sessionId) continue
    if (newest === undefined || status.startedAt > newest.startedAt)
      newest = { file, startedAt: status.startedAt }
  }
  return newest?.file
}

async function readStatus(file: string): Promise<ClaudeStatus | undefined> {
  for (let tries = 0; tries < TORN_READS; tries++) {
    try {
      const parsed = ClaudeStatus.safeParse(JSON.parse(await readFile(file, 'utf8')))
      if (parsed.success) return parsed.data
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== undefined) return undefined
    }
    await new Promise((resolve) => setTimeout(resolve, TORN_READ_MS))
  }
  return undefined
}
