/** A text that is laid out for its paste while its messages are on their way to the disk: seen by nobody, typed nowhere. */
import type { Turn } from '../runtime.ts'
import type { PasteSite, Spooled } from './paste-site.ts'
import { withoutFormats } from './quote.ts'
import { withoutControls } from './sanitize.ts'

/** Into a buffer of tmux's that only its name leads to. What the guard says of the pane is asked when it is pasted. */
export function prepare(site: PasteSite, turn: Turn): void {
  forgetPrepared(site)
  const spooled = spoolTurn(site, turn)
  try {
    spooled.lay()
  } catch {
    // A full disk: whoever pastes it meets that too, and tells.
    return
  }
  spooled.isLoaded = true
  site.prepared = { text: turn.text, spooled }
  site.server.run(loadBuffer(spooled)).catch(() => {
    spooled.isLoaded = false
  })
}

/** What was laid out for this very text, or is now. */
export function takePrepared(site: PasteSite, turn: Turn): Spooled {
  const { prepared } = site
  if (prepared?.text !== turn.text) {
    forgetPrepared(site)
    return spoolTurn(site, turn)
  }
  site.prepared = undefined
  return prepared.spooled
}

/** It is not given after all, or another one is. */
export function forgetPrepared(site: PasteSite): void {
  if (site.prepared !== undefined) discard(site, site.prepared.spooled)
  site.prepared = undefined
}

/** Out of the way, wherever it is. */
export function discard({ server }: PasteSite, spooled: Spooled): void {
  if (spooled.isLoaded) server.run(['delete-buffer', '-b', spooled.buffer]).catch(() => {})
  spooled.isLoaded = false
  spooled.remove()
}

export function loadBuffer({ buffer, path }: Spooled): readonly string[] {
  return ['load-buffer', '-b', buffer, withoutFormats(path)]
}

function spoolTurn(site: PasteSite, { text }: Turn): Spooled {
  return site.spool(withoutControls(text))
}
