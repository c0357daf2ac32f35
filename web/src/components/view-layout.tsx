import type { ReactNode } from 'react'
import type { Loaded } from '../data/queries.ts'
import { replaceRoute } from '../route.ts'
import { Icon } from './icon.tsx'

/** Same breakpoint as in styles/phone.css. */
export function isPhone(): boolean {
  return matchMedia('(max-width: 860px)').matches
}

export function EmptyState({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children === undefined ? null : <div className="empty-text">{children}</div>}
    </div>
  )
}

export function Loading() {
  return (
    <div className="loading" role="status">
      <span className="sr">Loading</span>
      <i /> <i /> <i />
    </div>
  )
}

export function ErrorMessage({ error }: { error: NonNullable<Loaded<unknown>['error']> }) {
  return (
    <div className="fault" role="alert">
      <strong>{error.message}</strong>
      {error.hint === undefined ? null : <span> {error.hint}</span>}
      <code>{error.code}</code>
    </div>
  )
}

/** Shows data, or that it is loading, or its error. Old data stays visible when a newer read fails. */
export function QueryResult<T>({
  answer,
  children,
}: {
  answer: Loaded<T>
  children: (data: T) => ReactNode
}) {
  const { data, error } = answer
  return (
    <>
      {error === undefined ? null : <ErrorMessage error={error} />}
      {data === undefined ? error === undefined ? <Loading /> : null : children(data)}
    </>
  )
}

export function ViewHeader({
  title,
  note,
  children,
}: {
  title: string
  note?: ReactNode
  children?: ReactNode
}) {
  return (
    <header className="head">
      <h1>{title}</h1>
      {note === undefined ? null : <p className="head-note">{note}</p>}
      <div className="head-tools">{children}</div>
    </header>
  )
}

/** Switches between the variants of a view, each of which has an address. */
export function Segments({ chosen, links }: { chosen: string; links: Readonly<Record<string, string>> }) {
  return (
    <div className="segments">
      {Object.entries(links).map(([label, link]) => (
        <button key={label} type="button" aria-pressed={label === chosen} onClick={() => replaceRoute(link)}>
          {label}
        </button>
      ))}
    </div>
  )
}

export function SidePanel({
  label,
  title = label,
  closeLink,
  children,
}: {
  label: string
  title?: string
  closeLink: string
  children: ReactNode
}) {
  return (
    <aside className="aside" aria-label={label}>
      <div className="aside-head">
        <h2>{title}</h2>
        <a className="button" data-kind="quiet" href={closeLink} aria-label="Close">
          <Icon name="close" />
        </a>
      </div>
      {children}
    </aside>
  )
}
