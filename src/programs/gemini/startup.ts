import { setTimeout as sleep } from 'node:timers/promises'
import type { Pane } from '../program.ts'
import type { StateKeeper } from '../session-state.ts'
import { isWorking, readInputBox } from './input-box.ts'

/** Timeout for its first hook. */
const START_MS = 120_000
/** Timeout for the transcript to show that the conversation was loaded. */
const LOADED_MS = 15_000
const LOOK_EVERY_MS = 100
const STEADY_LOOKS = 15
const HOOK_CHECK_MS = 500
/** In a row, since a screen that is being drawn may look idle. */
const IDLE_LOOKS = 3

interface StartupOptions {
  readonly pane: Pick<Pane, 'screen'>
  readonly state: StateKeeper
  /** Found running: hooks called while no service ran, and got no response. */
  readonly isFound: boolean
  readonly isResumed: boolean
}

/** Watches the screen from the launch, or after reattaching, until the program's state is known. */
export function watchStartup({ pane, state, isFound, isResumed }: StartupOptions) {
  let hasStarted = false
  let hasCalled = false
  let isLoaded = !isResumed
  let closed = false
  const late = setTimeout(reportMissingHooks, START_MS).unref()
  let loading: NodeJS.Timeout | undefined

  /**
   * Gemini calls its first hook some time before it accepts a prompt. When it resumes a conversation, it shows an
   * input box, loads the conversation, and redraws everything: text pasted before that is lost.
   */
  async function waitForPrompt() {
    let steadyLooks = 0
    while (state.now === 'initializing' && !closed) {
      await sleep(LOOK_EVERY_MS)
      const screen = hasStarted && isLoaded ? await pane.screen().catch(() => undefined) : undefined
      const isThere = screen !== undefined && readInputBox(screen) !== 'unknown'
      steadyLooks = isThere ? steadyLooks + 1 : 0
      if (steadyLooks < (isResumed ? STEADY_LOOKS : 1)) continue
      if (state.now === 'initializing' && !closed)
        state.become('idle', 'its session started, and its input box is there')
    }
  }

  function reportMissingHooks() {
    if (!hasStarted && state.now === 'initializing')
      state.become('error', 'it called no hook; check whether its settings disable hooks or extensions')
  }

  /**
   * Gemini works, or shows its input box, which a dialog would hide. The screen's state holds until the next
   * hook; the hook at the end of this turn may have got no response.
   */
  async function waitForHook() {
    let idleLooks = 0
    while (!hasCalled && !closed && state.now !== 'exited' && idleLooks < IDLE_LOOKS) {
      const screen = await pane.screen().catch(() => undefined)
      if (hasCalled || closed) return
      const isIdle = screen !== undefined && !isWorking(screen) && readInputBox(screen) !== 'unknown'
      idleLooks = isIdle ? idleLooks + 1 : 0
      if (isIdle && (state.now === 'unknown' || idleLooks === IDLE_LOOKS))
        state.become('idle', 'its input box is there, and nothing runs')
      else if (screen !== undefined && isWorking(screen))
        state.become('busy', 'its screen shows that it is working')
      await sleep(HOOK_CHECK_MS)
    }
  }

  void (isFound ? waitForHook() : waitForPrompt())

  return {
    /** The first hook called. */
    started() {
      hasStarted = true
      loading ??= setTimeout(() => (isLoaded = true), LOADED_MS).unref()
    },
    /** From now on its hooks report its activity. */
    called() {
      hasCalled = true
    },
    /** The resumed conversation is loaded. */
    loaded() {
      isLoaded = true
    },
    close() {
      closed = true
      clearTimeout(late)
      clearTimeout(loading)
    },
  }
}
