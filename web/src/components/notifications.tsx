import { createContext, type ReactNode, use, useCallback, useMemo, useState } from 'react'
import { ClientError } from '../../../src/client/client.ts'

interface Note {
  id: number
  tone: 'good' | 'bad'
  text: string
}

interface Notes {
  say(tone: Note['tone'], text: string): void
}

const NotesContext = createContext<Notes>({ say() {} })
const SHOWN_MS = 6000
let count = 0

/** Short words on what was just done, or why it was not. */
export function NotesArea({ children }: { children: ReactNode }) {
  const [notes, setNotes] = useState<readonly Note[]>([])
  const value = useMemo<Notes>(
    () => ({
      say(tone, text) {
        const note = { id: ++count, tone, text }
        setNotes((now) => [...now.slice(-3), note])
        setTimeout(() => setNotes((now) => now.filter((one) => one !== note)), SHOWN_MS)
      },
    }),
    [],
  )
  return (
    <NotesContext value={value}>
      {children}
      <div className="notes" role="status" aria-live="polite">
        {notes.map(({ id, tone, text }) => (
          <p key={id} className="note" data-tone={tone}>
            {text}
          </p>
        ))}
      </div>
    </NotesContext>
  )
}

/** Does something and says how it went. While it is under way, `isBusy`. */
export function useAct(): [
  act: (work: () => Promise<string | undefined>) => Promise<boolean>,
  isBusy: boolean,
] {
  const { say } = use(NotesContext)
  const [isBusy, setBusy] = useState(false)
  const act = useCallback(
    async (work: () => Promise<string | undefined>) => {
      setBusy(true)
      try {
        const done = await work()
        if (done !== undefined) say('good', done)
        return true
      } catch (error) {
        const hint = error instanceof ClientError && error.hint !== undefined ? `. ${error.hint}` : ''
        say('bad', `${error instanceof Error ? error.message : String(error)}${hint}`)
        return false
      } finally {
        setBusy(false)
      }
    },
    [say],
  )
  return [act, isBusy]
}

/** A receipt that is no success, as the error it is. */
export function demandOk(receipt: {
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
