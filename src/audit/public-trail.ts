import { hash } from 'node:crypto'
import type { AuditEntry } from './entry.ts'
import { type AuditLine, formatLine } from './readable-line.ts'

/**
 * The public trail (S3.22, S3.23): the lines that anyone may read, in their own chain. Its numbering has no gaps that would
 * reveal private entries (S3.15, C12), and its hashes cover only the text of the lines, so a reader of the file can verify
 * them with sha256 alone.
 */
export const PUBLIC_FORMAT = 'orchub-public-audit-1'

export interface PublicLine {
  /** Starts at 1. */
  readonly n: number
  readonly line: string
  readonly hash: string
}

export interface PublicHead {
  readonly n: number
  readonly hash: string
}

/** The first line of every format. The trail of one repository is a different chain than that of all repositories. */
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

/** The team's work for repositories, halts and resumes. Other public entries, such as the service's address, stay out. */
const PUBLISHED = /^(?:github|team)\./

/** As returned by the store or the API. */
type TrailEntry = Omit<AuditLine, 'subject' | 'confidence'> & {
  subject?: string | undefined
  confidence?: number | undefined
}
type ClassifiedEntry = Pick<AuditEntry, 'type' | 'class' | 'data'>

export function isPublic({ type, class: visibility, data }: ClassifiedEntry, repository?: string): boolean {
  if (visibility !== 'public' || !PUBLISHED.test(type)) return false
  if (repository === undefined || type.startsWith('team.')) return true
  return typeof data?.repository === 'string' && data.repository.toLowerCase() === repository.toLowerCase()
}

/** Writes `TASK` instead of `GITHUB.TASK`. */
export function publicLine({ subject, confidence, type, ...entry }: TrailEntry): string {
  return formatLine({
    ...entry,
    type: type.replace(/^github\./, ''),
    ...(subject === undefined ? {} : { subject }),
    ...(confidence === undefined ? {} : { confidence }),
  })
}

/** Numbers lines and chains their hashes. */
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
