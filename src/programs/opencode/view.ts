import { setTimeout as sleep } from 'node:timers/promises'
import type { Screen } from '../program.ts'

/** For its terminal interface to draw itself, on a machine under load. */
const PATIENCE_MS = 120_000
const LOOK_MS = 100
/** It is drawn a moment before it listens: what it did not hear is said again. */
const LOOKS_PER_SHOW = 10
/** In a version that draws its conversations in another way, people would never be rid of us. */
const MOST_SHOWS = 20

/** What its empty input box says before any conversation is open, and nowhere else. */
const INVITATION = 'Ask anything'
/** The lower edge of its input box, which is drawn after what stands in it. */
const LOWER_EDGE = '╹'
/** What people say in a conversation stands in boxes as well, further up. */
const BOX_LINES = 6

/** What people see in the pane. `nothing`: its terminal interface has not drawn anything yet. */
export type View = 'nothing' | 'conversation' | 'other'

export function viewOf({ lines }: Pick<Screen, 'lines'>): View {
  if (lines.every((line) => line.trim() === '')) return 'nothing'
  const edge = lines.findLastIndex((line) => line.includes(LOWER_EDGE))
  const box = lines.slice(Math.max(0, edge - BOX_LINES), Math.max(0, edge))
  return edge >= 0 && !box.some((line) => line.includes(INVITATION)) ? 'conversation' : 'other'
}

export interface ShowOptions {
  show(): Promise<unknown>
  view(): Promise<View>
  /** It is still the one that people should see. */
  isWanted(): boolean
}

/**
 * The terminal interface draws itself and listens some time after its server answers, and only the screen tells when.
 * Once it has shown the conversation a person may open another one: from then on theirs is the say.
 */
export async function showInPane({ show, view, isWanted }: ShowOptions): Promise<void> {
  const until = performance.now() + PATIENCE_MS
  const goesOn = () => isWanted() && performance.now() < until
  async function look(): Promise<View> {
    await sleep(LOOK_MS, undefined, { ref: false })
    return await view().catch(() => 'nothing')
  }
  for (let shows = 0; shows < MOST_SHOWS && goesOn(); ) {
    if ((await look()) === 'nothing' || !goesOn()) continue
    shows += 1
    await show().catch(() => {})
    for (let looks = 0; looks < LOOKS_PER_SHOW && goesOn(); looks++) {
      if ((await look()) === 'conversation') return
    }
  }
}
