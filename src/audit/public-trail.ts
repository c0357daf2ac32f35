import { hash } from 'node:crypto'
import type { AuditEntry } from './entry.ts'
import { type AuditLine, formatLine } from './line.ts'

/**
 * The public trail (S3.22, S3.23): the lines that anyone may read, in a chain of their own. It says nothing of the
 * entries between them, so that no gap tells of what is not public (S3.15, C12); and the text of the lines is all that
 * its hashes cover, so that whoever has the file can follow them with nothing but sha256.
 */
export const PUBLIC_FORMAT = 'orchub-public-audit-1'

export interface PublicLine {
  /** 1 for the first. */
  readonly n: number
  readonly line: string
  readonly hash: string
}

export interface PublicHead {
  readonly n: number
  readonly hash: string
}

/** The first line of every form; a trail of one repository is another chain than that of all of them. */
export function publicTitle(repository: string | undefined): string {
  return repository === undefined ? PUBLIC_FORMAT : `${PUBLIC_FORMAT} ${repository}`
}

function publicGenesis(title: string): string {
  return hash('sha256', `${title}\n`, 'hex')
}

/** `printf '%s\n%s\n' PREV LINE | sha256sum` */
function publicHash(prev: string, line: string): string {
  return hash('sha256', `${prev}\n${line}\n`, 'hex')
}

/** What the team did for repositories, and that people stopped it or let it go on. Where the service listens is nobody's business. */
const TOLD = /^(?:github|team)\./

/** As a store or an answer of the service gives it. */
type Given = Omit<AuditLine, 'subject' | 'confidence'> & {
  subject?: string | undefined
  confidence?: number | undefined
}
type Entry = Pick<AuditEntry, 'type' | 'class' | 'data'>

export function isPublic({ type, class: kept, data }: Entry, repository?: string): boolean {
  if (kept !== 'public' || !TOLD.test(type)) return false
  if (repository === undefined || type.startsWith('team.')) return true
  return typeof data?.repository === 'string' && data.repository.toLowerCase() === repository.toLowerCase()
}

/** `TASK`, as the documents have it, and not `GITHUB.TASK`. */
export function publicLine({ subject, confidence, type, ...entry }: Given): string {
  return formatLine({
    ...entry,
    type: type.replace(/^github\./, ''),
    ...(subject === undefined ? {} : { subject }),
    ...(confidence === undefined ? {} : { confidence }),
  })
}

/** Numbers and chains lines as they come. */
export function openPublicChain(title: string) {
  let head: PublicHead = { n: 0, hash: publicGenesis(title) }
  return {
    add(line: string): PublicLine {
      const next = { n: head.n + 1, line, hash: publicHash(head.hash, line) }
      head = { n: next.n, hash: next.hash }
      return next
    },
    head: (): PublicHead => head,
  }
}
