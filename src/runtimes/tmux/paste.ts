/** How text gets into a pane: written when the guard allows it, entered, and then proved. */
import type { PasteManner } from '../../programs/program.ts'
import type { Arrival, Turn } from '../runtime.ts'
import type { PasteSite } from './paste-target.ts'
import { forgetUnsent, leaveUnsent } from './pending-input.ts'
import { withoutControls } from './sanitize.ts'
import { enter, proveEntered } from './submit.ts'
import { write } from './write.ts'

export async function paste(site: PasteSite, turn: Turn, manner: PasteManner): Promise<Arrival> {
  const spooled = site.spool(withoutControls(turn.text))
  site.watching?.abort()
  try {
    const written = await write(site, spooled, manner)
    if (typeof written === 'object') return written
    const sent = { ...spooled.outline, writtenAt: site.clock.now() }
    const problem = written === 'pasted' ? await enter(site, manner, sent) : undefined
    if (problem !== undefined) return problem
    const arrival = await proveEntered(site, manner, sent)
    // It may stand there still, even with the input off when tmux was lost.
    if (arrival.state === 'uncertain') await leaveUnsent(site, sent)
    else if (written !== 'entered') void forgetUnsent(site)
    return arrival
  } finally {
    spooled.remove()
  }
}
