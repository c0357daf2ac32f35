import { hash } from 'node:crypto'
import { closeSync, fchmodSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { formatBytes } from '../base/bytes.ts'
import { type InboxFile, type InboxManifest, manifestOf, REFERENCES } from './inbox-manifest.ts'
import type { FileLimits } from './limits.ts'
import { ProblemError, refuse } from './problem.ts'
import {
  type Directory,
  listNames,
  type OpenFile,
  openDirectory,
  openFile,
  openFolder,
  openFolders,
} from './safe-fs/directory.ts'
import { type Pace, startPace } from './safe-fs/pace.ts'
import { readContent } from './safe-fs/read-file.ts'
import { removeTree } from './safe-fs/remove-tree.ts'
import { type FoundFile, openFound } from './safe-fs/select-files.ts'
import {
  createFile,
  makeFolder,
  makeFolders,
  setMode,
  temporaryName,
  writeNew,
} from './safe-fs/write-file.ts'

const DRAFT = '.inbox.'
const MOST_LEFTOVERS = 1000

/** Fills a folder beside inbox/ with copies and references, and puts it in inbox/'s place. */
export interface Copier {
  write(segments: readonly string[], text: string): Promise<InboxFile>
  takeFile(directory: Directory, name: string, real: string, to: readonly string[]): Promise<InboxFile>
  takeFiles(
    root: Directory,
    files: readonly FoundFile[],
    real: () => string,
    to: readonly string[],
    check?: (path: string, sha256: string) => void,
  ): Promise<InboxFile[]>
  /** Makes the files taken so far win over later ones for the same place. */
  prefer(): void
  seal(): Promise<InboxManifest>
  discard(): Promise<void>
}

interface CopierOptions {
  readonly limits: FileLimits
  readonly pace: Pace
}

export async function openCopier(workspace: string, { limits, pace }: CopierOptions): Promise<Copier> {
  const root = openDirectory(workspace, { shown: '' })
  const draftName = temporaryName('inbox')
  const draft = await beginDraft(root, draftName, pace)
  const inputs: InboxFile[] = []
  const taken = new Set([REFERENCES])
  const preferred = new Map<string, InboxFile>()
  let copiedBytes = 0
  let referencedBytes = 0
  let open = true
  // Cleans up even if the work was aborted.
  const unhurried = startPace()

  /** Checks before anything is written that the place is free, not reserved by the protocol, and within the limit. */
  function claim(segments: readonly string[]): string {
    const path = segments.join('/')
    if (segments.length === 0) refuse('bad_path', 'inbox', 'is the folder itself')
    if (taken.has(path))
      refuse('exists', `inbox/${path}`, 'already exists: two inputs have the same target path')
    if (inputs.length >= limits.files) {
      refuse('too_many_files', 'inbox', `would hold more than ${limits.files} files, which is the limit`)
    }
    taken.add(path)
    return path
  }

  function keep(input: InboxFile): InboxFile {
    inputs.push(input)
    return input
  }

  /** Closes the file. */
  async function take(
    file: OpenFile,
    shown: string,
    real: () => string,
    to: readonly string[],
  ): Promise<InboxFile> {
    try {
      const path = claim(to)
      const size = Number(file.stat.size)
      if (size > limits.inlineBytes) {
        referencedBytes += size
        if (referencedBytes > limits.referencedBytes) tooLarge('references', shown, limits.referencedBytes)
        return keep({ path, ...(await readContent(file, shown, pace)), reference: real() })
      }
      copiedBytes += size
      if (copiedBytes > limits.copiedBytes) tooLarge('copies', shown, limits.copiedBytes)
      const mode = (file.stat.mode & 0o111n) === 0n ? 0o444 : 0o555
      return keep({ path, ...(await inFolder(to, (folder, last) => copy(folder, last, mode))) })
    } finally {
      closeSync(file.fd)
    }

    async function copy(folder: Directory, last: string, mode: number) {
      const out = createFile(folder, last, mode)
      try {
        const content = await readContent(file, shown, pace, out)
        setMode(out, mode)
        return content
      } finally {
        closeSync(out)
      }
    }
  }

  async function inFolder<T>(
    segments: readonly string[],
    work: (folder: Directory, last: string) => T | Promise<T>,
  ): Promise<T> {
    const above = segments.slice(0, -1)
    if (above.length === 0) return await work(draft, segments.at(-1)!)
    const folder = makeFolders(draft, above)
    try {
      return await work(folder, segments.at(-1)!)
    } finally {
      folder.close()
    }
  }

  async function write(
    segments: readonly string[],
    text: string,
    path = claim(segments),
  ): Promise<InboxFile> {
    const data = Buffer.from(text)
    await inFolder(segments, (folder, last) => writeNew(folder, last, data, 0o444))
    return keep({ path, size: data.length, sha256: hash('sha256', data) })
  }

  return {
    write: (segments, text) => write(segments, text),
    async takeFile(directory, name, real, to) {
      const corrected = preferred.get(to.join('/'))
      if (corrected !== undefined) return corrected
      const opened = openFile(directory, name)
      if (!opened.ok) throw new ProblemError(opened.error)
      return await take(opened.value, real, () => real, to)
    },
    async takeFiles(from, files, real, to, check) {
      const found: InboxFile[] = []
      for (const file of files) {
        await pace.rest()
        const target = [...to, ...file.segments]
        const corrected = preferred.get(target.join('/'))
        if (corrected !== undefined) {
          found.push(corrected)
          continue
        }
        const input = await take(openFound(from, file), file.shown, () => join(real(), file.path), target)
        check?.(file.path, input.sha256)
        found.push(input)
      }
      return found
    },
    prefer() {
      for (const input of inputs) preferred.set(input.path, input)
    },
    async seal() {
      const references = inputs.filter(({ reference }) => reference !== undefined)
      if (references.length > 0) await write([REFERENCES], formatReferences(references), REFERENCES)
      makeReadOnly(draft, inputs)
      await putInPlace()
      close()
      return manifestOf(inputs)
    },
    async discard() {
      if (!open) return
      await removeTree(root, draftName, unhurried)
      close()
    },
  }

  async function putInPlace(): Promise<void> {
    // A rename replaces the empty inbox of a new workspace.
    if (tryRename(root, draftName, 'inbox')) return
    const before = temporaryName('inbox')
    const hadInbox = openFolder(root, 'inbox')
    if (hadInbox.ok) hadInbox.value.close()
    if (hadInbox.ok || hadInbox.error.code !== 'missing') renameSync(root.at('inbox'), root.at(before))
    renameSync(root.at(draftName), root.at('inbox'))
    await removeTree(root, before, unhurried)
  }

  function close() {
    open = false
    draft.close()
    root.close()
  }
}

/** Removes drafts of processes that died first. */
async function beginDraft(root: Directory, name: string, pace: Pace): Promise<Directory> {
  try {
    for (const left of listNames(root, MOST_LEFTOVERS).map(String)) {
      if (left.startsWith(DRAFT)) await removeTree(root, left, pace)
    }
    return makeFolder(root, name, 'inbox')
  } catch (error) {
    root.close()
    throw error
  }
}

/** False where something is in its place that is not an empty folder. */
function tryRename(root: Directory, from: string, to: string): boolean {
  try {
    renameSync(root.at(from), root.at(to))
    return true
  } catch {
    return false
  }
}

function tooLarge(what: string, shown: string, limit: number): never {
  refuse('too_large', shown, `would bring the ${what} over ${formatBytes(limit)}, which is the limit`)
}

/** C21. `path` is where the file is; `instead_of` where a copy would have been. */
function formatReferences(references: readonly InboxFile[]): string {
  const list = references.map(({ path, size, sha256, reference }) => ({
    path: reference,
    size,
    sha256,
    instead_of: `inbox/${path}`,
  }))
  return `${JSON.stringify({ references: list }, null, 2)}\n`
}

function makeReadOnly(draft: Directory, inputs: readonly InboxFile[]): void {
  for (const path of foldersOf(inputs)) {
    const opened = openFolders(draft, path.split('/'))
    if (!opened.ok) throw new ProblemError(opened.error)
    fchmodSync(opened.value.fd, 0o555)
    opened.value.close()
  }
  fchmodSync(draft.fd, 0o555)
}

/** All folders of copied files; references have none. */
function foldersOf(inputs: readonly InboxFile[]): Set<string> {
  const folders = new Set<string>()
  for (const { path, reference } of inputs) {
    if (reference !== undefined) continue
    for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) folders.add(path.slice(0, at))
  }
  return folders
}
