/** A person types into a pane from elsewhere than a client of tmux; meanwhile nothing else is written into it. */
import type { Keyboard } from '../picture.ts'
import { loadBuffer } from './paste-buffer.ts'
import type { PasteSite } from './paste-target.ts'
import { withoutControls } from './sanitize.ts'

/** By name, tmux sends what the program has asked its keys to be; the bytes of a browser's terminal may be others. */
const NAMED: Readonly<Record<string, string>> = {
  '\u001b[A': 'Up',
  '\u001b[B': 'Down',
  '\u001b[C': 'Right',
  '\u001b[D': 'Left',
  '\u001b[H': 'Home',
  '\u001b[F': 'End',
}
/** As much as one line to tmux may hold with room to spare. */
const PIECE = 512

export function openKeyboard(site: PasteSite, by: string): Keyboard {
  const { server, clock, pane } = site
  site.takenBy = by
  return {
    async type(keys) {
      site.typedAt = clock.now()
      const named = NAMED[keys]
      if (named !== undefined) {
        await server.run(['send-keys', '-t', pane, named])
        return
      }
      const bytes = [...Buffer.from(keys)].map((byte) => byte.toString(16).padStart(2, '0'))
      for (let at = 0; at < bytes.length; at += PIECE) {
        await server.run(['send-keys', '-H', '-t', pane, ...bytes.slice(at, at + PIECE)])
      }
    },
    async paste(text) {
      site.typedAt = clock.now()
      const spooled = site.spool(withoutControls(text))
      try {
        spooled.lay()
        await server.run(loadBuffer(spooled), ['paste-buffer', '-p', '-d', '-b', spooled.buffer, '-t', pane])
      } finally {
        spooled.remove()
      }
    },
    release() {
      site.takenBy = undefined
      // What is in its input box now is for the next look to find out.
      site.boxEmptyAt = undefined
    },
  }
}
