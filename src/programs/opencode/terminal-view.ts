import { setTimeout as sleep } from 'node:timers/promises'
import type { PaneScreen } from '../program.ts'

/** Time for its terminal interface to draw itself, on a machine under load. */
const PATIENCE_MS = 120_000
const LOOK_MS = 100
/** The interface is drawn shortly before it listens, so the request is repeated. */
const LOOKS_PER_SHOW = 10
/** Stop after this many requests: another version may draw conversations differently. */
const MAX_SHOWS = 20

/** Placeholder of its empty input box before a conversation is open, and nowhere else. */
const INVITATION = 'Ask anything'
/** Lower edge of its input box, drawn after its content. */
const LOWER_EDGE = '╹'
/** User messages in a conversation are also in boxes, further up. */
const BOX_LINES = 6

/** The view in the pane. `nothing`: its terminal interface has not drawn anything yet. */
export type TerminalView = 'nothing' | 'conversation' | 'other'

export function viewOf({ lines }: Pick<PaneScreen, 'lines'>): TerminalView {
  if (lines.every((line) => line.trim() === '')) return 'nothing'
  const edge = lines.findLastIndex((line) => line.includes(LOWER_EDGE))
  const box = lines.slice(Math.max(0, edge - BOX_LINES), Math.max(0, edge))
  return edge >= 0 && !box.some((line) => line.includes(INVITATION)) ? 'conversation' : 'other'
}

interface ShowOptions {
  show(): Promise<unknown>
  view(): Promise<TerminalView>
  /** People should still see it. */
  isWanted(): boolean
}

/**
 * The terminal interface draws itself and listens some time after its server responds, and only the screen
 * shows when. Once it has shown the conversation, a person may open another one, which then stays.
 */
export async function showInPane({ show, view, isWanted }: ShowOptions): Promise<void> {
  const until = performance.now() + PATIENCE_MS
  const isDue = () => isWanted() && performance.now() < until
  async function look(): Promise<TerminalView> {
    await sleep(LOOK_MS, undefined, { ref: false })
    return await view().catch(() => 'nothing')
  }
  for (let shows = 0; shows < MAX_SHOWS && isDue(); ) {
    if ((await look()) === 'nothing' || !isDue()) continue
    shows += 1
    await show().catch(() => {})
    for (let looks = 0; looks < LOOKS_PER_SHOW && isDue(); looks++) {
      if ((await look()) === 'conversation') return
    }
  }
}
