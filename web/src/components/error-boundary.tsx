import { Component, type ReactNode } from 'react'
import { loadAgain } from './lazy-component.ts'

interface Props {
  /** What is shown here. Another place is another chance. */
  place: string
  children: ReactNode
}

interface State {
  error: Error | undefined
}

/** Keeps a part that fails from taking the page with it. A class, because React catches errors in nothing else. */
export class Boundary extends Component<Props, State> {
  override state: State = { error: undefined }

  static getDerivedStateFromError(thrown: unknown): State {
    return { error: thrown instanceof Error ? thrown : new Error(String(thrown)) }
  }

  override componentDidUpdate(before: Props) {
    if (this.state.error !== undefined && before.place !== this.props.place) this.again()
  }

  again() {
    const wasMissing = loadAgain()
    this.setState({ error: undefined })
    // Browsers remember a module that could not be had; and after an update of the service the page has other parts.
    if (wasMissing) void reloadIfThere()
  }

  override render() {
    const { error } = this.state
    if (error === undefined) return this.props.children
    return (
      <div className="fault" role="alert">
        <p>
          <strong>This part of the page could not be shown.</strong> Nothing was lost, and the rest works.
        </p>
        <p>
          <code>{error.message.slice(0, 300)}</code>
        </p>
        <p>
          <button type="button" className="button" onClick={() => this.again()}>
            Load again
          </button>
        </p>
      </div>
    )
  }
}

/** While the service is away, what is shown is better than the browser's own page. */
async function reloadIfThere() {
  try {
    await fetch('/healthz', { cache: 'no-store' })
    location.reload()
  } catch {
    // The connection shows itself as lost already.
  }
}
