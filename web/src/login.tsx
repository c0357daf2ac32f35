import { useEffect, useState } from 'react'
import { ClientError } from '../../src/client/client.ts'
import { App, fetchView } from './app.tsx'
import { Boundary } from './components/error-boundary.tsx'
import { showCount } from './components/favicon-count.ts'
import { NotesArea } from './components/notifications.tsx'
import { Loading } from './components/view-layout.tsx'
import { keepHalf, keptHalf, openClient } from './data/api-client.ts'
import { openRoom, type Room, RoomContext } from './data/service.ts'
import { refine, usePlace } from './route.ts'

type Entry =
  | { step: 'looking' }
  | { step: 'outside'; why: string | undefined }
  | { step: 'unreachable' }
  | { step: 'inside'; room: Room }

const client = openClient()
/** Where somebody wanted to go before they were signed in, in this tab. */
const WANTED = 'orchub.wanted'
/** A longer one would go off at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Lets in whoever has a session, or a link that makes one. */
export function Entrance() {
  const place = usePlace()
  const { view, id } = place
  const code = view === 'login' ? id : undefined
  const [entry, setEntry] = useState<Entry>({ step: 'looking' })
  const [attempt, setAttempt] = useState(0)

  useEffect(() => {
    let isGone = false
    let room: Room | undefined
    let end: ReturnType<typeof setTimeout> | undefined
    let begunWith: string | null = null
    const signedOut = () => {
      void room?.close()
      const isOther = keptHalf() !== null && keptHalf() !== begunWith
      // Another window may have begun a session since: that one is not over.
      if (!isOther) keepHalf(undefined)
      if (isGone) return
      if (isOther) setAttempt((now) => now + 1)
      else setEntry({ step: 'outside', why: 'Your session has ended.' })
    }
    async function enter() {
      if (code !== undefined) {
        const { half } = await openWith(code)
        keepHalf(half)
        // The code is of no more use, and is not left in the history.
        refine(takeWanted())
        return
      }
      if (keptHalf() === null) return setEntry({ step: 'outside', why: undefined })
      begunWith = keptHalf()
      fetchView(view)
      const me = await client.me()
      if (isGone) return
      room = openRoom(client, me, signedOut)
      if (me.expires_at !== undefined) {
        end = setTimeout(signedOut, Math.min(Date.parse(me.expires_at) - Date.now(), LONGEST_TIMER_MS))
      }
      sessionStorage.removeItem(WANTED)
      setEntry({ step: 'inside', room })
    }
    enter().catch((error: unknown) => {
      if (isGone) return
      const isRefused = error instanceof ClientError && error.status !== undefined && error.status < 500
      if (isRefused) setEntry({ step: 'outside', why: error.message })
      else {
        setEntry({ step: 'unreachable' })
        setTimeout(() => isGone || setAttempt((now) => now + 1), 1500)
      }
    })
    return () => {
      isGone = true
      clearTimeout(end)
      void room?.close()
    }
  }, [code, attempt])

  const isOutside = entry.step === 'outside'
  useEffect(() => {
    if (!isOutside) return
    document.title = 'Orchub'
    showCount(0)
    if (place.view !== 'login') sessionStorage.setItem(WANTED, location.hash)
  }, [isOutside, place])
  // Whoever signs in in another window has come in here as well, where they wanted to go.
  useEffect(() => {
    if (!isOutside) return
    const comeIn = () => keptHalf() === null || setAttempt((now) => now + 1)
    addEventListener('storage', comeIn)
    return () => removeEventListener('storage', comeIn)
  }, [isOutside])

  if (entry.step === 'inside') {
    return (
      <RoomContext value={entry.room}>
        <NotesArea>
          <Boundary place={`${view}/${id ?? ''}`}>
            <App onLeave={() => setEntry({ step: 'outside', why: 'You are signed out.' })} />
          </Boundary>
        </NotesArea>
      </RoomContext>
    )
  }
  return (
    <main className="gate">
      <img src="/favicon.svg" alt="" />
      <h1>Orchub</h1>
      {entry.step === 'looking' ? <Loading /> : null}
      {entry.step === 'unreachable' ? <p role="alert">The service does not answer. Trying again …</p> : null}
      {entry.step === 'outside' ? (
        <>
          {entry.why === undefined ? null : <p role="alert">{entry.why}</p>}
          <p>
            On the machine where the service runs, <code>orc open</code> opens this page signed in.{' '}
            <code>orc open --print</code> prints the link, for another browser or a phone.
          </p>
        </>
      ) : null}
    </main>
  )
}

/** A link that was used already is of no matter to whoever is signed in: it was theirs, most likely. */
async function openWith(code: string): Promise<{ half: string }> {
  const known = keptHalf()
  try {
    return await client.openSession(code)
  } catch (error) {
    const isSignedIn = known !== null && (await client.me().then(yes, no))
    if (!isSignedIn) throw error
    return { half: known }
  }
}
const yes = () => true
const no = () => false

function takeWanted(): string {
  const wanted = sessionStorage.getItem(WANTED) ?? ''
  sessionStorage.removeItem(WANTED)
  return wanted.startsWith('#/') && !wanted.startsWith('#/login') ? wanted : '#/team'
}
