import type { AnswerOf } from '../../api/contract.ts'
import { type Call, type RouteHandler, SENT } from '../../api/http/call.ts'
import { formatEvent, startEventStream } from '../../api/http/event-stream.ts'
import { isInTeam } from '../../api/http/follow.ts'
import { visibleAgent } from '../../api/http/permission.ts'
import { AppError } from '../../base/errors.ts'
import type { TerminalSnapshot } from '../../runtimes/runtime.ts'
import type { Look } from './screens.ts'
import type { Hand } from './terminals.ts'

/** What an agent's terminal shows, as it changes: rows that are other than before. */
export const streamTerminal: RouteHandler<'terminalEvents'> = async (desk, call) => {
  const { engine, terminals, screens, openCalls } = desk
  const agent = visibleAgent(engine.team(), call, call.params.agent!)
  const stream = startEventStream(call.outgoing, openCalls.open('events', call.caller, call.outgoing))
  let look: Look | undefined
  let fault: { error: unknown } | undefined
  let isDue = false
  let wake = () => {}
  const due = () => {
    isDue = true
    wake()
  }
  const stopWatching = [
    // One that shows nothing must not keep a take-over alive, for which deliveries wait.
    ...(call.query.for === 'show' ? [terminals.watch(agent, handOf(call), due)] : []),
    screens.watch(agent, {
      // A reader that lags behind gets the newest when it has room, not all that it missed.
      onLook(next) {
        look = next
        due()
      },
      onFault(error) {
        fault = { error }
        due()
      },
    }),
  ]
  stream.signal.addEventListener('abort', due, { once: true })
  let shown: Look | undefined
  let holder: Hand | undefined
  let count = 0
  try {
    while (!stream.signal.aborted && isInTeam(desk, call)) {
      if (fault !== undefined) throw fault.error
      // A reload may have taken away what was allowed when it began.
      visibleAgent(engine.team(), call, agent)
      const holds = terminals.holder(agent)
      if (look !== undefined && (look !== shown || holds !== holder)) {
        const frame = frameOf(shown, look, holds, call.caller.token)
        stream.send(formatEvent('picture', ++count, JSON.stringify(frame)))
        shown = look
        holder = holds
      }
      await stream.drained()
      if (!isDue) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      isDue = false
    }
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'FORBIDDEN'))
      engine.log.warn({ agent, err: error }, 'a terminal could not be shown')
  } finally {
    for (const stop of stopWatching) stop()
    stream.end()
  }
  return SENT
}

function frameOf(
  before: Look | undefined,
  { session, canTakeOver, picture }: Look,
  holder: Hand | undefined,
  token: string,
): AnswerOf<'terminalEvents'> {
  return {
    session,
    ...(holder === undefined ? {} : { taken_by: holder.name, taken_here: holder.token === token }),
    can_take_over: canTakeOver,
    columns: picture.columns,
    height: picture.rows.length,
    ...(picture.cursor === undefined ? {} : { cursor: picture.cursor }),
    rows: changedRows(before?.picture, picture),
  }
}

/** Another session of the same person is another hand. */
function handOf({ me, caller }: Pick<Call, 'me' | 'caller'>): Hand {
  return { name: me, token: caller.token }
}

/** All of them when its size is another one. */
function changedRows(
  before: TerminalSnapshot | undefined,
  { columns, rows }: TerminalSnapshot,
): [number, string][] {
  const isSameSize = before?.columns === columns && before.rows.length === rows.length
  return rows
    .map((row, index): [number, string] => [index, row])
    .filter(([index, row]) => !isSameSize || before.rows[index] !== row)
}

export const takeTerminal: RouteHandler<'takeTerminal'> = async ({ engine, terminals }, call) => {
  const agent = visibleAgent(engine.team(), call, call.params.agent!)
  await terminals.take(agent, handOf(call))
  return { status: 'taken', by: call.me }
}

export const releaseTerminal: RouteHandler<'releaseTerminal'> = async ({ engine, terminals }, call) => {
  const agent = visibleAgent(engine.team(), call, call.params.agent!)
  await terminals.release(agent, handOf(call))
  return { status: 'free' }
}

export const typeKeys: RouteHandler<'typeKeys'> = async ({ engine, terminals }, call) => {
  const agent = visibleAgent(engine.team(), call, call.params.agent!)
  const keyboard = terminals.keyboard(agent, handOf(call))
  await (call.body.paste === true ? keyboard.paste(call.body.keys) : keyboard.type(call.body.keys))
  return { status: 'typed' }
}
