import type { Result } from '../base/result.ts'

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

/** A problem with files that agents or users wrote. It is expected, so it is a value and not an exception. */
export interface WorkspaceProblem {
  readonly code: ProblemCode
  /** Safe to print: special characters in names are escaped. */
  readonly path: string
  /** A whole sentence that names the path. */
  readonly message: string
}

export type WorkspaceResult<T> = Result<T, readonly WorkspaceProblem[]>

export function problem(code: ProblemCode, path: string, what: string): WorkspaceProblem {
  return { code, path, message: `${path} ${what}` }
}

export function failed(...problems: WorkspaceProblem[]): { ok: false; error: readonly WorkspaceProblem[] } {
  return { ok: false, error: problems }
}

/** Carries a problem out of deep code to the nearest function that returns a WorkspaceResult. */
export class ProblemError extends Error {
  readonly problem: WorkspaceProblem

  constructor(problem: WorkspaceProblem) {
    super(problem.message)
    this.name = 'ProblemError'
    this.problem = problem
  }
}

export function refuse(code: ProblemCode, path: string, what: string): never {
  throw new ProblemError(problem(code, path, what))
}

/** Turns file system errors into problems and rethrows everything else. */
export function problemOf(error: unknown, path: string): WorkspaceProblem {
  if (error instanceof ProblemError) return error.problem
  switch (errnoOf(error)) {
    case 'ENOENT':
      return problem('missing', path, 'does not exist')
    case 'ELOOP':
      return problem('symbolic_link', path, 'is a symbolic link, which is not followed')
    case 'ENOTDIR':
      return problem('not_a_folder', path, 'is not a folder')
    case 'EISDIR':
      return problem('not_a_file', path, 'is a folder, not a file')
    case 'EEXIST':
    case 'ENOTEMPTY':
      return problem('exists', path, 'already exists')
    case 'EACCES':
    case 'EPERM':
    case 'EIO':
      return problem('unreadable', path, `cannot be accessed (${errnoOf(error)})`)
    case 'EROFS':
      return problem('read_only', path, 'cannot be written: the file system is read-only')
    case 'ENAMETOOLONG':
      return problem('bad_name', path, 'has a name that is too long')
    case 'ENOSPC':
    case 'EDQUOT':
      return problem('disk_full', path, 'cannot be written: the disk is full')
  }
  throw error
}

export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
}

/** Runs `work` and returns problems and file system errors as values. */
export async function attempt<T>(path: string, work: () => Promise<T> | T): Promise<WorkspaceResult<T>> {
  try {
    return { ok: true, value: await work() }
  } catch (error) {
    return failed(problemOf(error, path))
  }
}

/** Names what `work` was about in the file system errors that it throws. */
export async function named<T>(path: string, work: () => Promise<T> | T): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw new ProblemError(problemOf(error, path))
  }
}

/** Joins the first problems into one line for people. */
export function nameProblems(problems: readonly WorkspaceProblem[], most = 5): string {
  const named = problems.slice(0, most).map(({ message }) => message)
  const more = problems.length - named.length
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
}
