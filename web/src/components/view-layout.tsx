import type { ReactNode } from 'react'
import type { Loaded } from '../data/queries.ts'

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
