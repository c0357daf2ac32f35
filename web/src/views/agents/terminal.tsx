import '@xterm/xterm/css/xterm.css'
import { type IDisposable, Terminal } from '@xterm/xterm'
import { useEffect, useRef, useState } from 'react'
import { ClientError } from '../../../../src/client/client.ts'
import type { AnswerOf } from '../../../../src/service/contract.ts'
import { Icon } from '../../components/icon.tsx'
import { useAct } from '../../components/notifications.tsx'
import { Empty, Shown } from '../../components/view-layout.tsx'
import { screenTopic, useAsk, useRoom } from '../../data/service.ts'
import { whileSeen } from '../../data/while-visible.ts'

type Frame = AnswerOf<'terminalEvents'>

/** What was typed within this time goes out together. */
const TYPING_MS = 15
/** Whether the rows are also there as text for a screen reader, which costs a little. */
const SPOKEN = 'orchub.screen-reader'
/** Every other key is the terminal's while it is taken over. */
const WAY_OUT = 'F6'
const SCROLLBACK_LINES = 3000

/** The agent's terminal as it is in its pane, as a picture; a keyboard only for whoever took it over. */
export function TerminalPane({ agent, session }: { agent: string; session: string }) {
  const room = useRoom()
  const place = useRef<HTMLDivElement>(null)
  const [frame, setFrame] = useState<Omit<Frame, 'rows'>>()
  const [fault, setFault] = useState<string>()
  const [act, isBusy] = useAct()
  const isMine = frame?.taken_here === true
  /** By the same person, in another browser. */
  const isElsewhere = !isMine && frame?.taken_by === room.me.name
  const holds = useRef(false)
  holds.current = isMine
  const terminal = useRef<Terminal>(undefined)
  const letGo = useRef<HTMLButtonElement>(null)
  const [isPast, setPast] = useState(false)
  const [isSpoken, setSpoken] = useState(() => localStorage.getItem(SPOKEN) === 'yes')
  const isRead = useRef(isSpoken)

  useEffect(() => {
    const screen = new Terminal({
      disableStdin: true,
      cursorBlink: false,
      fontFamily: getComputedStyle(document.body).getPropertyValue('--mono'),
      fontSize: 12.5,
      scrollback: 0,
      allowProposedApi: false,
      theme: { background: '#0b0f12', foreground: '#d5dde5', cursor: '#5cc8b0' },
      screenReaderMode: isRead.current,
    })
    terminal.current = screen
    screen.open(place.current!)
    screen.write('\u001b)0')
    // Whoever only looks goes through with Tab; whoever has its keyboard must be able to leave it.
    screen.attachCustomKeyEventHandler((event) => {
      if (!holds.current) return false
      if (event.key !== WAY_OUT) return true
      event.preventDefault()
      if (event.type === 'keydown') letGo.current?.focus()
      return false
    })
    async function follow(signal: AbortSignal) {
      for await (const { rows, ...next } of room.client.terminalEvents(agent, { signal })) {
        draw(screen, { rows, ...next })
        setFault(undefined)
        setFrame((now) => (same(now, next) ? now : next))
        room.touch(screenTopic(agent))
      }
    }
    const stopWatching = whileSeen(follow, {
      holds: () => holds.current,
      onFault: (error) => setFault(error instanceof ClientError ? error.message : String(error)),
    })
    return () => {
      stopWatching()
      screen.dispose()
      terminal.current = undefined
    }
  }, [agent, room, session === 'exited'])

  useEffect(() => {
    isRead.current = isSpoken
    localStorage.setItem(SPOKEN, isSpoken ? 'yes' : 'no')
    if (terminal.current !== undefined) terminal.current.options.screenReaderMode = isSpoken
  }, [isSpoken])

  useEffect(() => {
    const screen = terminal.current
    if (screen === undefined) return
    screen.options.disableStdin = !isMine
    if (!isMine) return
    screen.focus()
    return connectKeyboard(screen, place.current!, (keys, paste) =>
      room.client.typeKeys(agent, { keys, ...(paste ? { paste } : {}) }).catch((error: unknown) => {
        setFault(error instanceof Error ? error.message : String(error))
      }),
    )
  }, [isMine, agent, room])

  const hasTerminal = frame === undefined || frame.columns > 0
  return (
    <div className="terminal-view">
      <div className="terminal-bar">
        <span className="label">
          {frame === undefined
            ? 'connecting …'
            : frame.columns === 0
              ? 'no terminal; its last words'
              : `${frame.columns} × ${frame.height}`}
        </span>
        {frame?.taken_by === undefined ? null : (
          <strong className="taken" role="status">
            {isMine || isElsewhere ? 'You have' : `${frame.taken_by} has`} taken over
            {isElsewhere ? ' elsewhere' : ''}; deliveries wait
          </strong>
        )}
        {isMine ? <span className="label">{WAY_OUT} leaves the terminal</span> : null}
        <span className="top-space" />
        <button
          type="button"
          className="button"
          data-kind="quiet"
          aria-pressed={isSpoken}
          onClick={() => setSpoken(!isSpoken)}
        >
          Screen reader
        </button>
        <button
          type="button"
          className="button"
          data-kind="quiet"
          aria-pressed={isPast}
          disabled={isMine}
          onClick={() => setPast(!isPast)}
        >
          <Icon name="history" />
          Scrollback
        </button>
        {room.mayAct() &&
        frame?.can_take_over === true &&
        (frame.taken_by === undefined || isMine || isElsewhere) ? (
          <button
            ref={letGo}
            type="button"
            className="button"
            disabled={isBusy}
            onClick={() =>
              void act(async () => {
                const isHeld = isMine || isElsewhere
                await (isHeld ? room.client.releaseTerminal(agent) : room.client.takeTerminal(agent))
                return isHeld ? `Deliveries to ${agent} go on.` : undefined
              })
            }
          >
            <Icon name="keyboard" />
            {isMine || isElsewhere ? 'Let go' : 'Take over'}
          </button>
        ) : null}
      </div>
      {fault === undefined ? null : (
        <p className="fault" role="alert">
          {fault}
        </p>
      )}
      {isPast && !isMine ? <Scrollback agent={agent} /> : null}
      <section
        hidden={isPast && !isMine}
        className="terminal-screen"
        data-takes-keys={isMine || undefined}
        data-has-terminal={hasTerminal}
        ref={place}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the keyboard.
        tabIndex={0}
        aria-label={`Terminal of ${agent}`}
      />
    </div>
  )
}

/** Row by row: the cursor is moved, the row is cleared, its text is written. Nothing scrolls. */
function draw(screen: Terminal, { rows, columns, height, cursor }: Frame) {
  const width = columns === 0 ? 120 : columns
  const high = Math.max(2, height)
  if (screen.cols !== width || screen.rows !== high) {
    screen.options.fontSize = fontSizeFor(width, screen.element?.parentElement?.clientWidth ?? 0)
    screen.resize(width, high)
  }
  let text = '\u001b[?7l\u001b[?25l'
  for (const [index, row] of rows) text += `\u001b[${index + 1};1H\u001b[0m\u001b[2K\u000f${row}`
  text += '\u001b[0m\u000f'
  if (cursor !== undefined) text += `\u001b[${cursor.y + 1};${cursor.x + 1}H\u001b[?25h`
  screen.write(text)
}

/** All of it in sight if that can still be read; else it scrolls. */
function fontSizeFor(columns: number, room: number): number {
  const CHARACTER = 0.602
  return Math.max(9.5, Math.min(13, Math.floor(((room - 24) / columns / CHARACTER) * 2) / 2))
}

function same(one: object | undefined, other: object): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** Keys in the order they were pressed: the next go out when the last have arrived. */
function connectKeyboard(
  screen: Terminal,
  place: HTMLElement,
  send: (keys: string, paste: boolean) => Promise<unknown>,
) {
  let waiting = ''
  let sending = Promise.resolve<unknown>(undefined)
  let timer: ReturnType<typeof setTimeout> | undefined
  const flush = () => {
    timer = undefined
    const keys = waiting
    waiting = ''
    if (keys !== '') sending = sending.then(() => send(keys, false))
  }
  const listening: IDisposable = screen.onData((keys) => {
    waiting += keys
    timer ??= setTimeout(flush, TYPING_MS)
  })
  // As one piece: what has several lines would otherwise be entered line by line.
  const paste = (event: ClipboardEvent) => {
    const text = event.clipboardData?.getData('text/plain') ?? ''
    event.preventDefault()
    event.stopPropagation()
    flush()
    if (text !== '') sending = sending.then(() => send(text, true))
  }
  place.addEventListener('paste', paste, true)
  return () => {
    listening.dispose()
    place.removeEventListener('paste', paste, true)
    clearTimeout(timer)
  }
}

/** What went by in the terminal, as text that can be searched and copied; it begins at its end. */
function Scrollback({ agent }: { agent: string }) {
  const place = useRef<HTMLPreElement>(null)
  const answer = useAsk(
    `history:${agent}`,
    async (client) => (await client.terminal(agent, { lines: SCROLLBACK_LINES })).screen,
    // The terminal beside it says when it shows something else.
    ['session', screenTopic(agent)],
    1000,
  )
  const isThere = answer.data !== undefined
  useEffect(() => {
    place.current?.scrollTo({ top: place.current.scrollHeight })
  }, [isThere])
  return (
    <Shown answer={answer}>
      {(screen) =>
        screen.trim() === '' ? (
          <Empty title={`${agent} has shown nothing yet`} />
        ) : (
          <pre
            className="terminal-history"
            ref={place}
            // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the keyboard.
            tabIndex={0}
            aria-label={`The last ${SCROLLBACK_LINES} lines of ${agent}`}
            role="log"
            aria-live="off"
          >
            {screen.trimEnd()}
          </pre>
        )
      }
    </Shown>
  )
}
