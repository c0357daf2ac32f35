import { AppError } from '../../../model/errors.ts'
import type { Picture } from '../../../runtimes/picture.ts'
import type { Session } from '../../../runtimes/runtime.ts'
import { type Call, type RouteHandler, SENT } from '../call.ts'
import { formatEvent, startEventStream } from '../event-stream.ts'
import { isInTeam } from '../follow.ts'
import { visibleAgent } from '../permission.ts'
import type { Hand } from '../terminals.ts'

/** While it changes, and while it does not. */
const LIVELY_MS = 80
const CALM_MS = 400
const CALM_AFTER = 12
/** Of a session that has no terminal but tells what it showed. */
const TEXT_ROWS = 200

/** What an agent's terminal shows, as it changes: rows that are other than before. */
export const streamTerminal: RouteHandler<'terminalEvents'> = async (desk, call) => {
  const { switchboard, terminals, openCalls, log } = { ...desk, log: desk.switchboard.log }
  const agent = visibleAgent(switchboard.team(), call, call.params.agent!)
  const stream = startEventStream(call.outgoing, openCalls.open('events', call.caller, call.outgoing))
  let wake = () => {}
  const stopWatching = terminals.watch(agent, handOf(call), () => wake())
  stream.signal.addEventListener('abort', () => wake(), { once: true })
  let shown: Shown | undefined
  let last = ''
  let quiet = 0
  let count = 0
  try {
    while (!stream.signal.aborted && isInTeam(desk, call)) {
      // A reload may have taken away what was allowed when it began.
      visibleAgent(switchboard.team(), call, agent)
      const session = switchboard.sessions.session(agent)
      const picture = await look(session)
      const holder = terminals.holder(agent)
      const frame = {
        session: session?.state ?? 'exited',
        ...(holder === undefined
          ? {}
          : { taken_by: holder.name, taken_here: holder.token === call.caller.token }),
        can_take_over: session?.takeOver !== undefined,
        columns: picture.columns,
        height: picture.rows.length,
        ...(picture.cursor === undefined ? {} : { cursor: picture.cursor }),
        rows: changedRows(shown, picture),
      }
      shown = { columns: picture.columns, rows: picture.rows }
      const text = JSON.stringify(frame)
      const isNew = frame.rows.length > 0 || text !== last
      last = JSON.stringify({ ...frame, rows: [] })
      if (isNew) stream.send(formatEvent('picture', ++count, text))
      quiet = isNew ? 0 : quiet + 1
      await stream.drained()
      await new Promise<void>((resolve) => {
        const cancel = setTimeout(resolve, quiet > CALM_AFTER ? CALM_MS : LIVELY_MS)
        wake = () => {
          clearTimeout(cancel)
          resolve()
        }
        if (stream.signal.aborted) wake()
      })
    }
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'FORBIDDEN'))
      log.warn({ agent, err: error }, 'a terminal could not be shown')
  } finally {
    stopWatching()
    stream.end()
  }
  return SENT
}

/** Another session of the same person is another hand. */
function handOf({ me, caller }: Pick<Call, 'me' | 'caller'>): Hand {
  return { name: me, token: caller.token }
}

interface Shown {
  columns: number
  rows: readonly string[]
}

async function look(session: Session | undefined): Promise<Picture> {
  if (session?.picture !== undefined) return session.picture()
  const text = (await session?.screen?.(TEXT_ROWS)) ?? ''
  return { columns: 0, rows: text.split('\n'), cursor: undefined }
}

/** All of them when its size is another one. */
function changedRows(before: Shown | undefined, { columns, rows }: Picture): [number, string][] {
  const isSameSize = before?.columns === columns && before.rows.length === rows.length
  return rows
    .map((row, index): [number, string] => [index, row])
    .filter(([index, row]) => !isSameSize || before.rows[index] !== row)
}

export const takeTerminal: RouteHandler<'takeTerminal'> = async ({ switchboard, terminals }, call) => {
  const agent = visibleAgent(switchboard.team(), call, call.params.agent!)
  await terminals.take(agent, handOf(call))
  return { status: 'taken', by: call.me }
}

export const releaseTerminal: RouteHandler<'releaseTerminal'> = async ({ switchboard, terminals }, call) => {
  const agent = visibleAgent(switchboard.team(), call, call.params.agent!)
  await terminals.release(agent, handOf(call))
  return { status: 'free' }
}

export const typeKeys: RouteHandler<'typeKeys'> = async ({ switchboard, terminals }, call) => {
  const agent = visibleAgent(switchboard.team(), call, call.params.agent!)
  const keyboard = terminals.keyboard(agent, handOf(call))
  await (call.body.paste === true ? keyboard.paste(call.body.keys) : keyboard.type(call.body.keys))
  return { status: 'typed' }
}
