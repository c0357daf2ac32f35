import '@xterm/xterm/css/xterm.css'
import { type IDisposable, Terminal } from '@xterm/xterm'
import { useEffect, useRef, useState } from 'react'
import type { AnswerOf } from '../../../../src/api/contract.ts'
import { ClientError } from '../../../../src/client/client.ts'
import { Icon } from '../../components/icon.tsx'
import { useAction } from '../../components/notifications.tsx'
import { EmptyState, QueryResult } from '../../components/view-layout.tsx'
import { useServiceQuery } from '../../data/queries.ts'
import { useService } from '../../data/service.ts'
import { whileVisible } from '../../data/while-visible.ts'

type Frame = AnswerOf<'terminalEvents'>

/** Keys typed within this time are sent together. */
const TYPING_MS = 15
/** Remembers whether the rows are also rendered as text for screen readers. */
const SCREEN_READER_KEY = 'orchub.screen-reader'
/** The terminal gets every other key while you have taken it over. */
const LEAVE_KEY = 'F6'
const SCROLLBACK_LINES = 3000

/** The agent's terminal as its pane shows it. Only the person who took it over can type. */
export function TerminalPane({ agent, session }: { agent: string; session: string }) {
  const service = useService()
  const place = useRef<HTMLDivElement>(null)
  const [frame, setFrame] = useState<Omit<Frame, 'rows'>>()
  const [fault, setFault] = useState<string>()
  const [act, isBusy] = useAction()
  const isMine = frame?.taken_here === true
  /** The same person has taken over in another browser. */
  const isElsewhere = !isMine && frame?.taken_by === service.me.name
  const holds = useRef(false)
  holds.current = isMine
  const terminal = useRef<Terminal>(undefined)
  const releaseButton = useRef<HTMLButtonElement>(null)
  const [isScrollback, setScrollback] = useState(false)
  const [isForScreenReader, setForScreenReader] = useState(
    () => localStorage.getItem(SCREEN_READER_KEY) === 'yes',
  )
  const screenReaderMode = useRef(isForScreenReader)

  useEffect(() => {
    const screen = new Terminal({
      disableStdin: true,
      cursorBlink: false,
      fontFamily: getComputedStyle(document.body).getPropertyValue('--mono'),
      fontSize: 12.5,
      scrollback: 0,
      allowProposedApi: false,
      theme: { background: '#0b0f12', foreground: '#d5dde5', cursor: '#5cc8b0' },
      screenReaderMode: screenReaderMode.current,
    })
    terminal.current = screen
    screen.open(place.current!)
    screen.write('\u001b)0')
    // Tab moves past a terminal that is only shown; one that was taken over needs a key to leave it.
    screen.attachCustomKeyEventHandler((event) => {
      if (!holds.current) return false
      if (event.key !== LEAVE_KEY) return true
      event.preventDefault()
      if (event.type === 'keydown') releaseButton.current?.focus()
      return false
    })
    async function follow(signal: AbortSignal) {
      for await (const { rows, ...next } of service.client.terminalEvents(agent, { signal })) {
        draw(screen, { rows, ...next })
        setFault(undefined)
        setFrame((now) => (same(now, next) ? now : next))
        service.refreshQueries('scrollback', agent)
      }
    }
    const stopWatching = whileVisible(follow, {
      holds: () => holds.current,
      onError: (error) => setFault(error instanceof ClientError ? error.message : String(error)),
    })
    return () => {
      stopWatching()
      screen.dispose()
      terminal.current = undefined
    }
  }, [agent, service, session === 'exited'])

  useEffect(() => {
    screenReaderMode.current = isForScreenReader
    localStorage.setItem(SCREEN_READER_KEY, isForScreenReader ? 'yes' : 'no')
    if (terminal.current !== undefined) terminal.current.options.screenReaderMode = isForScreenReader
  }, [isForScreenReader])

  useEffect(() => {
    const screen = terminal.current
    if (screen === undefined) return
    screen.options.disableStdin = !isMine
    if (!isMine) return
    screen.focus()
    return connectKeyboard(screen, place.current!, (keys, paste) =>
      service.client.typeKeys(agent, { keys, ...(paste ? { paste } : {}) }).catch((error: unknown) => {
        setFault(error instanceof Error ? error.message : String(error))
      }),
    )
  }, [isMine, agent, service])

  const hasTerminal = frame === undefined || frame.columns > 0
  return (
    <div className="terminal-view">
      <div className="terminal-bar">
        <span className="label">
          {frame === undefined
            ? 'connecting …'
            : frame.columns === 0
              ? 'no terminal; latest output'
              : `${frame.columns} × ${frame.height}`}
        </span>
        {frame?.taken_by === undefined ? null : (
          <strong className="taken" role="status">
            {isMine || isElsewhere ? 'You have' : `${frame.taken_by} has`} taken over
            {isElsewhere ? ' in another browser' : ''}; messages wait
          </strong>
        )}
        {isMine ? <span className="label">{LEAVE_KEY} leaves the terminal</span> : null}
        <span className="top-space" />
        <button
          type="button"
          className="button"
          data-kind="quiet"
          aria-pressed={isForScreenReader}
          onClick={() => setForScreenReader(!isForScreenReader)}
        >
          Screen reader
        </button>
        <button
          type="button"
          className="button"
          data-kind="quiet"
          aria-pressed={isScrollback}
          disabled={isMine}
          onClick={() => setScrollback(!isScrollback)}
        >
          <Icon name="history" />
          Scrollback
        </button>
        {service.mayAct() &&
        frame?.can_take_over === true &&
        (frame.taken_by === undefined || isMine || isElsewhere) ? (
          <button
            ref={releaseButton}
            type="button"
            className="button"
            disabled={isBusy}
            onClick={() =>
              void act(async () => {
                const isHeld = isMine || isElsewhere
                await (isHeld ? service.client.releaseTerminal(agent) : service.client.takeTerminal(agent))
                return isHeld ? `Messages to ${agent} are delivered again.` : undefined
              })
            }
          >
            <Icon name="keyboard" />
            {isMine || isElsewhere ? 'Release' : 'Take over'}
          </button>
        ) : null}
      </div>
      {fault === undefined ? null : (
        <p className="fault" role="alert">
          {fault}
        </p>
      )}
      {isScrollback && !isMine ? <Scrollback agent={agent} /> : null}
      <section
        hidden={isScrollback && !isMine}
        className="terminal-screen"
        data-takes-keys={isMine || undefined}
        data-has-terminal={hasTerminal}
        ref={place}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users have to be able to scroll it.
        tabIndex={0}
        aria-label={`Terminal of ${agent}`}
      />
    </div>
  )
}

/** Redraws changed rows in place: moves the cursor, clears the row, writes its text. Nothing scrolls. */
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

/** Fits the full width if the text stays readable; otherwise the terminal scrolls. */
function fontSizeFor(columns: number, width: number): number {
  const CHARACTER = 0.602
  return Math.max(9.5, Math.min(13, Math.floor(((width - 24) / columns / CHARACTER) * 2) / 2))
}

function same(one: object | undefined, other: object): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** Sends keys in the order they were pressed, each batch after the one before has arrived. */
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
  // Paste as one piece: the program would otherwise submit each line.
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

/** The terminal's history as text to search and copy, scrolled to its end. */
function Scrollback({ agent }: { agent: string }) {
  const place = useRef<HTMLPreElement>(null)
  const answer = useServiceQuery('scrollback', [agent, SCROLLBACK_LINES])
  const isThere = answer.data !== undefined
  useEffect(() => {
    place.current?.scrollTo({ top: place.current.scrollHeight })
  }, [isThere])
  return (
    <QueryResult answer={answer}>
      {(screen) =>
        screen.trim() === '' ? (
          <EmptyState title={`No output from ${agent} yet`} />
        ) : (
          <pre
            className="terminal-history"
            ref={place}
            // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users have to be able to scroll it.
            tabIndex={0}
            aria-label={`The last ${SCROLLBACK_LINES} lines of ${agent}`}
            role="log"
            aria-live="off"
          >
            {screen.trimEnd()}
          </pre>
        )
      }
    </QueryResult>
  )
}
