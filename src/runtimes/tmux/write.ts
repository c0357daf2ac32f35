/**
 * The write itself. Between the look that allowed it and the paste nothing of a person's may come in: what tmux can
 * check, it checks again in the same go as it pastes, and while people are attached their keys are held off.
 */
import type { PasteManner } from '../../programs/program.ts'
import { sleep } from '../clock.ts'
import { guardPaste } from '../paste-guard.ts'
import { type Arrival, noLongerWanted } from '../runtime.ts'
import { LOOK_AGAIN_MS, watchObstacle } from './blocked-paste.ts'
import { TmuxRefused } from './connection.ts'
import { type Command, ControlLost } from './control.ts'
import { type Look, lookAt } from './pane-snapshot.ts'
import { loadBuffer } from './paste-buffer.ts'
import type { PasteSite, Spooled, Written } from './paste-target.ts'
import { enterIfUnsent, isTakingEarlier, markUnsent, releaseInput } from './pending-input.ts'
import { commandLine } from './quote.ts'

/** A program that is read off its screen has shown by then that it took what was entered. */
const SHOWN_MS = 500
/** What a person typed last is on the screen by then. */
const SETTLE_MS = 50

interface Refusal {
  readonly reason: string
  readonly isFinal?: true
  readonly againMs?: number
}

/** Writes as soon as the guard allows it; `queued`, with what stood in the way, when it does not in time. */
export async function write(
  site: PasteSite,
  spooled: Spooled,
  manner: PasteManner,
): Promise<Written | Arrival> {
  const deadline = site.clock.now() + manner.patienceMs
  let isInTheWay = false
  try {
    while (true) {
      if (manner.gone?.aborted) return noLongerWanted(manner.gone)
      const attempt = await attemptWrite(site, spooled, manner)
      if (typeof attempt === 'string') return attempt
      const left = deadline - site.clock.now()
      isInTheWay = left <= 0 && !attempt.isFinal
      if (attempt.isFinal || isInTheWay)
        return { state: 'queued', evidence: `not written: ${attempt.reason}` }
      site.waits(attempt.reason)
      await site.stirred(Math.min(LOOK_AGAIN_MS, attempt.againMs ?? LOOK_AGAIN_MS, left), manner.gone)
    }
  } finally {
    if (isInTheWay) void watchObstacle(site, manner)
    else site.waits(undefined)
  }
}

async function attemptWrite(
  site: PasteSite,
  spooled: Spooled,
  manner: PasteManner,
): Promise<Written | Refusal> {
  try {
    const looking = lookAt(site, manner)
    looking.catch(() => {})
    // While tmux looks.
    spooled.lay()
    const look = await looking
    const refusal = refusalOf(look, manner)
    const isTaking = isTakingEarlier(site, look.facts.state, manner.lagMs ?? SHOWN_MS)
    if (isTaking || (await enterIfUnsent(site, look))) return { reason: 'it takes what was pasted before' }
    if (refusal !== undefined) return refusal
    const isDraftPossible = look.persons > 0 || (site.boxEmptyAt ?? -1) <= site.server.personSeenAt
    const isFirst = site.boxEmptyAt === undefined
    site.boxEmptyAt = site.clock.now()
    if (!isDraftPossible && !isFirst) return await writeIfUnchanged(site, spooled, manner, look, 'open')
    return await writeWithInputHeld(site, spooled, manner)
  } catch (error) {
    if (error instanceof ControlLost) return { reason: error.message }
    if (error instanceof TmuxRefused) return { reason: error.message, isFinal: true }
    throw error
  }
}

/** A key that was pressed before we looked may not be on the screen yet: keep further ones out, wait, look again. */
async function writeWithInputHeld(
  site: PasteSite,
  spooled: Spooled,
  manner: PasteManner,
): Promise<Written | Refusal> {
  const { server, clock, pane } = site
  let attempt: Written | Refusal | undefined
  try {
    await server.run(['select-pane', '-d', '-t', pane])
    await sleep(clock, SETTLE_MS)
    const look = await lookAt(site, manner)
    const refusal = refusalOf({ ...look, facts: { ...look.facts, isInputOff: false } }, manner)
    attempt = refusal ?? (await writeIfUnchanged(site, spooled, manner, look, 'held'))
    return attempt
  } finally {
    // Whatever happened, nobody is left with a dead keyboard.
    if (attempt !== 'entered' && attempt !== 'pasted') await releaseInput(site)
  }
}

function refusalOf({ facts }: Look, { gone }: PasteManner): Refusal | undefined {
  if (gone?.aborted) return { reason: noLongerWanted(gone).evidence, againMs: 0 }
  const decision = guardPaste(facts)
  return decision.write ? undefined : decision
}

const TRACE = '@orc_written'

/**
 * Whether the paste was done, asked over the next connection. The last one ends only when tmux has dropped it, with
 * whatever it had not done yet; so the answer is final.
 */
async function hasTrace({ server, pane }: PasteSite, { buffer }: Spooled): Promise<boolean | undefined> {
  try {
    const [trace] = await server.run(['display-message', '-p', '-t', pane, `#{${TRACE}}`])
    return trace!.lines[0] === buffer
  } catch {
    return undefined
  }
}

/** tmux drops what is pasted while a pane's input is off, so it is on for exactly that long. */
async function writeIfUnchanged(
  site: PasteSite,
  spooled: Spooled,
  manner: PasteManner,
  look: Look,
  input: 'open' | 'held',
): Promise<Written | Refusal> {
  const { server, pane } = site
  const inputOn: Command = ['select-pane', '-e', '-t', pane]
  const inputOff: Command = ['select-pane', '-d', '-t', pane]
  const pasteIt: Command = ['paste-buffer', '-p', '-d', '-b', spooled.buffer, '-t', pane]
  const isEnterDue = manner.enterAfterMs === 0
  const unsent = markUnsent(pane, spooled.outline)
  const pressed: Command[] = isEnterDue ? [['send-keys', '-t', pane, 'Enter']] : [inputOff, ...unsent]
  const before: Command[] = input === 'held' ? [inputOn] : []
  const facts = '#{pane_dead}#{pane_in_mode}#{pane_synchronized}#{pane_input_off}/#{session_attached}'
  // Left in the pane with the paste itself, for when we are cut off before tmux can answer.
  const trace: Command = ['set-option', '-p', '-t', pane, TRACE, spooled.buffer]
  const seen = `000${input === 'held' ? 1 : 0}/${look.attached}`
  let said: string
  try {
    const blocks = await server.run(loadBuffer(spooled), [
      ...['if-shell', '-F', '-t', pane, `#{==:${facts},${seen}}`],
      commandLine([...before, trace, pasteIt, ...pressed, ['display-message', '-p', 'written']]),
      commandLine([
        ['delete-buffer', '-b', spooled.buffer],
        ['display-message', '-p', 'refused'],
      ]),
    ])
    said = blocks.at(-1)!.lines[0] ?? ''
  } catch (error) {
    if (!(error instanceof ControlLost)) throw error
    const isWritten = await hasTrace(site, spooled)
    if (isWritten === undefined) return 'unknown'
    said = isWritten ? 'written' : 'refused'
  }
  if (said !== 'written') return { reason: 'its pane changed just then', againMs: 0 }
  return isEnterDue ? 'entered' : 'pasted'
}
