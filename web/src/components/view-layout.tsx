import type { ReactNode } from 'react'
import type { Answer } from '../data/service.ts'

/** What is said where there is nothing, nothing yet, or something went wrong. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
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

export function Fault({ error }: { error: NonNullable<Answer<unknown>['error']> }) {
  return (
    <div className="fault" role="alert">
      <strong>{error.message}</strong>
      {error.hint === undefined ? null : <span> {error.hint}</span>}
      <code>{error.code}</code>
    </div>
  )
}

/** An answer with its three ways of not being there; an old one stays while a new one fails. */
export function Shown<T>({ answer, children }: { answer: Answer<T>; children: (data: T) => ReactNode }) {
  const { data, error } = answer
  return (
    <>
      {error === undefined ? null : <Fault error={error} />}
      {data === undefined ? error === undefined ? <Loading /> : null : children(data)}
    </>
  )
}

export function Head({ title, note, children }: { title: string; note?: ReactNode; children?: ReactNode }) {
  return (
    <header className="head">
      <h1>{title}</h1>
      {note === undefined ? null : <p className="head-note">{note}</p>}
      <div className="head-tools">{children}</div>
    </header>
  )
}
