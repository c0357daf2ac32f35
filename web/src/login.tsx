import { QueryClientProvider } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { ClientError } from '../../src/client/client.ts'
import { App, fetchView, showRequestCount } from './app.tsx'
import { ErrorBoundary } from './components/error-boundary.tsx'
import { NotificationArea } from './components/notifications.tsx'
import { Loading } from './components/view-layout.tsx'
import { openClient, sessionHalf, storeSessionHalf } from './data/api-client.ts'
import { connectService, type Service, ServiceContext } from './data/service.ts'
import { replaceRoute, useRoute } from './route.ts'

type LoginState =
  | { step: 'checking' }
  | { step: 'signed-out'; why: string | undefined }
  | { step: 'unreachable' }
  | { step: 'signed-in'; service: Service }

const client = openClient()
/** Remembers the address that was opened before signing in, for this tab. */
const RETURN_KEY = 'orchub.wanted'
/** setTimeout fires at once for longer delays. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Shows the control room to a browser with a session, or with a link that opens one. */
export function Login() {
  const route = useRoute()
  const { view, id } = route
  const code = view === 'login' ? id : undefined
  const [state, setState] = useState<LoginState>({ step: 'checking' })
  const [attempt, setAttempt] = useState(0)

  useEffect(() => {
    let isGone = false
    let service: Service | undefined
    let end: ReturnType<typeof setTimeout> | undefined
    let begunWith: string | null = null
    const signedOut = () => {
      void service?.close()
      const isOther = sessionHalf() !== null && sessionHalf() !== begunWith
      // Another window may have signed in since: keep that session.
      if (!isOther) storeSessionHalf(undefined)
      if (isGone) return
      if (isOther) setAttempt((now) => now + 1)
      else setState({ step: 'signed-out', why: 'Your session has ended.' })
    }
    async function enter() {
      if (code !== undefined) {
        const { half } = await openWith(code)
        storeSessionHalf(half)
        // The code works once; do not leave it in the history.
        replaceRoute(takeReturnAddress())
        return
      }
      if (sessionHalf() === null) return setState({ step: 'signed-out', why: undefined })
      begunWith = sessionHalf()
      fetchView(view)
      const me = await client.me()
      if (isGone) return
      service = connectService(client, me, signedOut)
      if (me.expires_at !== undefined) {
        end = setTimeout(signedOut, Math.min(Date.parse(me.expires_at) - Date.now(), LONGEST_TIMER_MS))
      }
      sessionStorage.removeItem(RETURN_KEY)
      setState({ step: 'signed-in', service })
    }
    enter().catch((error: unknown) => {
      if (isGone) return
      const isRefused = error instanceof ClientError && error.status !== undefined && error.status < 500
      if (isRefused) setState({ step: 'signed-out', why: error.message })
      else {
        setState({ step: 'unreachable' })
        setTimeout(() => isGone || setAttempt((now) => now + 1), 1500)
      }
    })
    return () => {
      isGone = true
      clearTimeout(end)
      void service?.close()
    }
  }, [code, attempt])

  const isSignedOut = state.step === 'signed-out'
  useEffect(() => {
    if (!isSignedOut) return
    document.title = 'Orchub'
    showRequestCount(0)
    if (view !== 'login') sessionStorage.setItem(RETURN_KEY, location.hash)
  }, [isSignedOut, route])
  // Signing in in another window signs in this one too.
  useEffect(() => {
    if (!isSignedOut) return
    const signIn = () => sessionHalf() === null || setAttempt((now) => now + 1)
    addEventListener('storage', signIn)
    return () => removeEventListener('storage', signIn)
  }, [isSignedOut])

  if (state.step === 'signed-in') {
    return (
      <ServiceContext value={state.service}>
        <QueryClientProvider client={state.service.queries}>
          <NotificationArea>
            <ErrorBoundary resetKey={`${view}/${id ?? ''}`}>
              <App onLeave={() => setState({ step: 'signed-out', why: 'You are signed out.' })} />
            </ErrorBoundary>
          </NotificationArea>
        </QueryClientProvider>
      </ServiceContext>
    )
  }
  return (
    <main className="login">
      <img src="/favicon.svg" alt="" />
      <h1>Orchub</h1>
      {state.step === 'checking' ? <Loading /> : null}
      {state.step === 'unreachable' ? <p role="alert">The service is not responding. Retrying …</p> : null}
      {state.step === 'signed-out' ? (
        <>
          {state.why === undefined ? null : <p role="alert">{state.why}</p>}
          <p>
            Run <code>orc open</code> on the machine that runs the service to open this page signed in.{' '}
            <code>orc open --print</code> prints a link for another browser or a phone.
          </p>
        </>
      ) : null}
    </main>
  )
}

/** A used link still works in a browser that is signed in: most likely that browser used it. */
async function openWith(code: string): Promise<{ half: string }> {
  const known = sessionHalf()
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

function takeReturnAddress(): string {
  const wanted = sessionStorage.getItem(RETURN_KEY) ?? ''
  sessionStorage.removeItem(RETURN_KEY)
  return wanted.startsWith('#/') && !wanted.startsWith('#/login') ? wanted : '#/team'
}
