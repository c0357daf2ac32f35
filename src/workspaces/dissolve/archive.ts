import { closeSync, createWriteStream, read, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGzip } from 'node:zlib'
import { Header, Pax } from 'tar'
import { formatBytes } from '../../base/bytes.ts'
import type { FileLimits } from '../limits.ts'
import {
  attempt,
  ProblemError,
  problemOf,
  refuse,
  type WorkspaceProblem,
  type WorkspaceResult,
} from '../problem.ts'
import { type Directory, openDirectory } from '../safe-fs/directory.ts'
import { type Pace, startPace } from '../safe-fs/pace.ts'
import { type FoundFile, openFound, selectFiles } from '../safe-fs/select-files.ts'
import { temporaryName } from '../safe-fs/write-file.ts'

interface ArchivedFolder {
  readonly folder: string
  /** The folder in the archive that its content is in. */
  readonly prefix: string
  /** True leaves an entry of the folder out, with everything in it. */
  skips?(path: string): boolean
}

interface ArchiveWanted {
  /** The .tar.gz to be made; a file of that name is replaced. */
  readonly file: string
  readonly folders: readonly ListedFolder[]
  /** More files, of our own. */
  readonly texts?: readonly { readonly path: string; readonly text: string }[]
  readonly limits: FileLimits
  readonly signal?: AbortSignal
}

/** The files of a folder that an archive will hold, and those that it cannot. */
interface ListedFolder extends ArchivedFolder {
  readonly files: readonly FoundFile[]
  readonly leftOut: readonly WorkspaceProblem[]
}

const BLOCK = 512
const PIECE = 256 * 1024
const readPiece = promisify(read)

/** Lists the files before anything is written, so that the caller can refuse an incomplete archive. */
export function listArchive(
  folders: readonly ArchivedFolder[],
  { file, limits, signal }: Pick<ArchiveWanted, 'file' | 'limits' | 'signal'>,
): Promise<WorkspaceResult<readonly ListedFolder[]>> {
  return attempt(file, async () => {
    const pace = startPace(signal)
    const listed: ListedFolder[] = []
    for (const folder of folders) listed.push({ ...folder, ...(await listFolder(folder, limits, pace)) })
    return listed
  })
}

/**
 * A .tar.gz of regular files only, and how many there are. Read as carefully as what is copied, in pieces, and whole or not
 * there at all.
 */
export function writeArchive(wanted: ArchiveWanted): Promise<WorkspaceResult<number>> {
  const { file, folders, limits, signal, texts = [] } = wanted
  const draft = join(dirname(file), temporaryName(basename(file)))
  return attempt(file, async () => {
    const files = folders.flatMap((folder) => folder.files)
    const size = files.reduce((sum, { stat }) => sum + Number(stat.size), 0)
    if (size > limits.referencedBytes) {
      refuse(
        'too_large',
        file,
        `would hold more than ${formatBytes(limits.referencedBytes)}, which is the limit`,
      )
    }
    try {
      const blocks = Readable.from(archiveBlocks(folders, texts, startPace(signal)), { objectMode: false })
      await pipeline(blocks, createGzip(), createWriteStream(draft, { flags: 'wx', mode: 0o644 }))
      renameSync(draft, file)
    } finally {
      rmSync(draft, { force: true })
    }
    return files.length + texts.length
  })
}

/** Reports a folder that cannot be opened under its own name, not under the archive's. */
function openRoot(folder: string, prefix: string): Directory {
  try {
    return openDirectory(folder, { shown: prefix })
  } catch (error) {
    throw new ProblemError(problemOf(error, folder))
  }
}

async function listFolder({ folder, prefix, skips }: ArchivedFolder, limits: FileLimits, pace: Pace) {
  const root = openRoot(folder, prefix)
  try {
    const skip = skips === undefined ? {} : { skips }
    return await selectFiles(root, { limits, pace, hardLinks: 'inside', ...skip })
  } finally {
    root.close()
  }
}

async function* archiveBlocks(
  listed: readonly ListedFolder[],
  texts: NonNullable<ArchiveWanted['texts']>,
  pace: Pace,
) {
  for (const { path, text } of texts) {
    const data = Buffer.from(text)
    yield headerOf(path, data.length, 0o644, new Date())
    yield padded(data)
  }
  for (const { folder, prefix, files } of listed) {
    const root = openRoot(folder, prefix)
    try {
      for (const found of files) yield* fileBlocks(root, found, `${prefix}/${found.path}`)
    } finally {
      root.close()
    }
  }
  yield Buffer.alloc(2 * BLOCK)

  async function* fileBlocks(root: Directory, found: FoundFile, path: string) {
    const { fd, stat } = openFound(root, found)
    try {
      const size = Number(stat.size)
      yield headerOf(path, size, Number(stat.mode & 0o777n), stat.mtime)
      for (let done = 0; done < size; ) {
        await pace.rest()
        const piece = Buffer.allocUnsafe(Math.min(PIECE, size - done))
        const { bytesRead } = await readPiece(fd, piece, 0, piece.length, done)
        if (bytesRead === 0) refuse('changed', found.shown, 'was changed while it was being archived')
        done += bytesRead
        yield piece.subarray(0, bytesRead)
      }
      if (size % BLOCK !== 0) yield Buffer.alloc(BLOCK - (size % BLOCK))
    } finally {
      closeSync(fd)
    }
  }
}

/** Puts an extended header in front for values that do not fit into the old one, such as a long path. */
function headerOf(path: string, size: number, mode: number, mtime: Date): Buffer {
  const header = new Header({ path, size, mode, mtime, type: 'File' })
  header.encode()
  const block = header.block!
  return header.needPax ? Buffer.concat([new Pax({ path, size, mtime }).encode(), block]) : block
}

function padded(data: Buffer): Buffer {
  return Buffer.concat([data, Buffer.alloc((BLOCK - (data.length % BLOCK)) % BLOCK)])
}
