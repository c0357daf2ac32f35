/** The escape sequence for desktop notifications; `bell` for terminals that have none or that we don't recognize. */
export type NotificationMethod = 'osc9' | 'osc99' | 'osc777' | 'bell'

type Environment = Readonly<Record<string, string | undefined>>

/** Detects the terminal by its environment variables. Multiplexers pass on only the bell. */
export function notificationMethod(env: Environment): NotificationMethod {
  const { TERM = '', TERM_PROGRAM = '' } = env
  if (env.TMUX !== undefined || env.STY !== undefined || /^(screen|tmux)/.test(TERM)) return 'bell'
  if (env.KITTY_WINDOW_ID !== undefined || TERM === 'xterm-kitty') return 'osc99'
  if (TERM_PROGRAM === 'iTerm.app' || env.LC_TERMINAL === 'iTerm2') return 'osc9'
  if (/^(ghostty|WezTerm)$/.test(TERM_PROGRAM)) return 'osc777'
  if (/^(xterm-ghostty|foot|rxvt-unicode|contour)/.test(TERM)) return 'osc777'
  return 'bell'
}

const BELL = '\x07'
const END = '\x1b\\'
const TITLE = 'Orchub'
const MAX_LENGTH = 160

/** The bell, plus a desktop notification with the text where the terminal can show one. */
export function notification(method: NotificationMethod, text: string): string {
  const body = sanitize(text)
  switch (method) {
    case 'osc9':
      return `\x1b]9;${TITLE}: ${body}${END}${BELL}`
    case 'osc99':
      return `\x1b]99;i=orchub:d=0;${TITLE}${END}\x1b]99;i=orchub:d=1:p=body;${body}${END}${BELL}`
    case 'osc777':
      // Semicolons separate fields.
      return `\x1b]777;notify;${TITLE};${body.replaceAll(';', ',')}${END}${BELL}`
    case 'bell':
      return BELL
  }
}

/** Agents write this text, so nothing in it may end the escape sequence or start another. */
function sanitize(text: string): string {
  const line = text.replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
  return line.length <= MAX_LENGTH ? line : `${line.slice(0, MAX_LENGTH)}…`
}

interface Notifier {
  asked(text: string): void
  close(): void
}

interface NotifierOptions {
  write(text: string): void
  method: NotificationMethod
  /** Calls back after that long; the returned function cancels. */
  after(ms: number, callback: () => void): () => void
}

/** Requests within this time after a notification are announced together, so a person is interrupted once. */
const QUIET_MS = 10_000

/** Announces the first request at once and those that follow soon after together. */
export function createNotifier({ write, method, after }: NotifierOptions): Notifier {
  let waiting: string[] = []
  let cancel: (() => void) | undefined

  function announce() {
    if (waiting.length === 0) return
    const [first] = waiting
    const text = waiting.length === 1 ? first! : `${waiting.length} requests need a person: orc inbox`
    waiting = []
    write(notification(method, text))
    cancel = after(QUIET_MS, () => {
      cancel = undefined
      announce()
    })
  }

  return {
    asked(text) {
      waiting.push(text)
      if (cancel === undefined) announce()
    },
    close: () => cancel?.(),
  }
}
