import { Component, type ReactNode } from 'react'
import { retryFailedLoads } from './lazy-component.ts'

interface Props {
  /** A new key clears the error. */
  resetKey: string
  children: ReactNode
}

interface State {
  error: Error | undefined
}

/** Contains the error of one component. React offers this only to classes. */
export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: undefined }

  static getDerivedStateFromError(thrown: unknown): State {
    return { error: thrown instanceof Error ? thrown : new Error(String(thrown)) }
  }

  override componentDidUpdate(before: Props) {
    if (this.state.error !== undefined && before.resetKey !== this.props.resetKey) this.retry()
  }

  retry() {
    const wasMissing = retryFailedLoads()
    this.setState({ error: undefined })
    // Browsers cache a failed module, and after an update of the service the files have other names.
    if (wasMissing) void reloadIfReachable()
  }

  override render() {
    const { error } = this.state
    if (error === undefined) return this.props.children
    return (
      <div className="fault" role="alert">
        <p>
          <strong>This part of the page could not be shown.</strong> Nothing is lost, and the rest of the page
          works.
        </p>
        <p>
          <code>{error.message.slice(0, 300)}</code>
        </p>
        <p>
          <button type="button" className="button" onClick={() => this.retry()}>
            Try again
          </button>
        </p>
      </div>
    )
  }
}

/** Reloads only if the service answers: the browser's own error page would be worse than this one. */
async function reloadIfReachable() {
  try {
    await fetch('/healthz', { cache: 'no-store' })
    location.reload()
  } catch {
    // The header already shows that the connection is lost.
  }
}
