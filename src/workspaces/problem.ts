/** A problem with files that others wrote: expected, so a value and not an exception. */
export type ProblemCode =
  | 'symbolic_link'
  | 'hard_link'
  | 'special_file'
  | 'bad_name'
  | 'bad_path'
  | 'missing'
  | 'not_a_file'
  | 'not_a_folder'
  | 'exists'
  | 'changed'
  | 'unreadable'
  | 'read_only'
  | 'disk_full'
  | 'too_many_files'
  | 'too_deep'
  | 'too_large'
  | 'torn'
  | 'irremovable'
  | 'half_removed'
  | 'called_off'
  | 'withheld'
  | 'invalid'

export interface Problem {
  readonly code: ProblemCode
  /** Safe to print: what a name holds that is not plain is escaped. */
  readonly path: string
  /** A whole sentence that names the path. */
  readonly message: string
}

export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] }

export function problem(code: ProblemCode, path: string, what: string): Problem {
  return { code, path, message: `${path} ${what}` }
}

export function failed(...problems: Problem[]): { ok: false; problems: readonly Problem[] } {
  return { ok: false, problems }
}

/** Carries a problem out of deep code to the nearest function that returns an Outcome. */
export class ProblemError extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.message)
    this.name = 'ProblemError'
    this.problem = problem
  }
}

export function refuse(code: ProblemCode, path: string, what: string): never {
  throw new ProblemError(problem(code, path, what))
}

/** The problem behind a throw; a throw that is a fault of ours goes on. */
export function problemOf(error: unknown, path: string): Problem {
  if (error instanceof ProblemError) return error.problem
  switch (errnoOf(error)) {
    case 'ENOENT':
      return problem('missing', path, 'is not there')
    case 'ELOOP':
      return problem('symbolic_link', path, 'is a symbolic link, and links are not followed')
    case 'ENOTDIR':
      return problem('not_a_folder', path, 'is not a folder')
    case 'EISDIR':
      return problem('not_a_file', path, 'is a folder and not a file')
    case 'EEXIST':
    case 'ENOTEMPTY':
      return problem('exists', path, 'is there already')
    case 'EACCES':
    case 'EPERM':
    case 'EIO':
      return problem('unreadable', path, `cannot be used (${errnoOf(error)})`)
    case 'EROFS':
      return problem('read_only', path, 'cannot be written: the file system is read-only')
    case 'ENAMETOOLONG':
      return problem('bad_name', path, 'has too long a name')
    case 'ENOSPC':
    case 'EDQUOT':
      return problem('disk_full', path, 'does not fit on the disk')
  }
  throw error
}

export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
}

/** Runs deep code; what it refuses, and what the disk refuses, becomes a value. */
export async function attempt<T>(path: string, work: () => Promise<T> | T): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await work() }
  } catch (error) {
    return failed(problemOf(error, path))
  }
}

const MOST_NAMED = 10

/** For people, in one line. */
export function nameProblems(problems: readonly Problem[]): string {
  const named = problems.slice(0, MOST_NAMED).map(({ message }) => message)
  return [...named, ...(problems.length > named.length ? ['and more'] : [])].join('; ')
}
