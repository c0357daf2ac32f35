import { createContext, type ReactNode, use, useCallback, useMemo, useState } from 'react'
import { ClientError } from '../../../src/client/client.ts'

interface Notification {
  id: number
  tone: 'good' | 'bad'
  text: string
}

interface Notifier {
  notify(tone: Notification['tone'], text: string): void
}

const NotifierContext = createContext<Notifier>({ notify() {} })
const SHOWN_MS = 6000
let count = 0

/** Shows short-lived notifications: what was done, or why it failed. */
export function NotificationArea({ children }: { children: ReactNode }) {
  const [notes, setNotes] = useState<readonly Notification[]>([])
  const value = useMemo<Notifier>(
    () => ({
      notify(tone, text) {
        const note = { id: ++count, tone, text }
        setNotes((now) => [...now.slice(-3), note])
        setTimeout(() => setNotes((now) => now.filter((one) => one !== note)), SHOWN_MS)
      },
    }),
    [],
  )
  return (
    <NotifierContext value={value}>
      {children}
      <div className="notes" role="status" aria-live="polite">
        {notes.map(({ id, tone, text }) => (
          <p key={id} className="note" data-tone={tone}>
            {text}
          </p>
        ))}
      </div>
    </NotifierContext>
  )
}

/** Runs an action and shows its outcome as a notification. `isBusy` while it runs, so that buttons can be disabled. */
export function useAction(): [
  act: (work: () => Promise<string | undefined>) => Promise<boolean>,
  isBusy: boolean,
] {
  const { notify } = use(NotifierContext)
  const [isBusy, setBusy] = useState(false)
  const act = useCallback(
    async (work: () => Promise<string | undefined>) => {
      setBusy(true)
      try {
        const done = await work()
        if (done !== undefined) notify('good', done)
        return true
      } catch (error) {
        const hint = error instanceof ClientError && error.hint !== undefined ? `. ${error.hint}` : ''
        notify('bad', `${error instanceof Error ? error.message : String(error)}${hint}`)
        return false
      } finally {
        setBusy(false)
      }
    },
    [notify],
  )
  return [act, isBusy]
}

/** Throws the error of a receipt that is not a success. */
export function requireSuccess(receipt: {
  status: string
  reason?: string
  message?: string
  hint?: string | undefined
  request_id?: string
}) {
  if (receipt.status === 'delivered' || receipt.status === 'ok') return
  const why = receipt.reason ?? receipt.message ?? receipt.status
  throw new Error(receipt.hint === undefined ? why : `${why}. ${receipt.hint}`)
}
