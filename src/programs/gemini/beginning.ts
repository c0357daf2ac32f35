import { setTimeout as sleep } from 'node:timers/promises'
import type { Pane } from '../program.ts'
import { isWorking, readInputBox } from './input-box.ts'
import type { StateKeeper } from './state.ts'

/** Without a sign of its hooks. */
const START_MS = 120_000
/** Without the word of its transcript that the conversation was loaded. */
const LOADED_MS = 15_000
const LOOK_EVERY_MS = 100
const STEADY_LOOKS = 15
const LOOK_AGAIN_MS = 500
/** A screen that is being drawn may show neither. */
const IDLE_LOOKS = 3

export interface BeginningOptions {
  readonly pane: Pick<Pane, 'screen'>
  readonly state: StateKeeper
  /** Found again: hooks that called meanwhile found nobody. */
  readonly isFound: boolean
  readonly isResumed: boolean
}

/** From the launch, or from being found again, until it is known what the program does. */
export function watchBeginning({ pane, state, isFound, isResumed }: BeginningOptions) {
  let hasStarted = false
  let hasCalled = false
  let isLoaded = !isResumed
  let closed = false
  const late = setTimeout(isLate, START_MS).unref()
  let loading: NodeJS.Timeout | undefined

  /**
   * It calls its first hook some time before it takes a prompt. When it takes up a conversation, it shows an input
   * box, loads the conversation, and draws everything anew: what was pasted before that is lost.
   */
  async function untilItsPrompt() {
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

  function isLate() {
    if (!hasStarted && state.now === 'initializing')
      state.become('error', 'none of its hooks has called: are hooks or extensions off in its settings?')
  }

  /**
   * It works, or its input box is there: a dialog would hide it. What its screen says holds until the next hook, and
   * the hook at the end of this turn may have found nobody.
   */
  async function untilItsHook() {
    let idleLooks = 0
    while (!hasCalled && !closed && state.now !== 'exited' && idleLooks < IDLE_LOOKS) {
      const screen = await pane.screen().catch(() => undefined)
      if (hasCalled || closed) return
      const isIdle = screen !== undefined && !isWorking(screen) && readInputBox(screen) !== 'unknown'
      idleLooks = isIdle ? idleLooks + 1 : 0
      if (isIdle && (state.now === 'unknown' || idleLooks === IDLE_LOOKS))
        state.become('idle', 'its input box is there, and nothing runs')
      else if (screen !== undefined && isWorking(screen))
        state.become('busy', 'it works, as its screen shows')
      await sleep(LOOK_AGAIN_MS)
    }
  }

  void (isFound ? untilItsHook() : untilItsPrompt())

  return {
    /** Its first hook called. */
    started() {
      hasStarted = true
      loading ??= setTimeout(() => (isLoaded = true), LOADED_MS).unref()
    },
    /** From now on its hooks tell what it does. */
    called() {
      hasCalled = true
    },
    /** The conversation that it takes up is there. */
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
