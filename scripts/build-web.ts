/**
 * Builds the control room into web/dist unless it is up to date. It is fast if there is
 * nothing to do: `npm start` waits for it.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'web/dist')
const stamp = join(dist, '.sources')

/** The sources of the files: of src/, only the client and the errors it knows. */
const SOURCES = [
  'web/src',
  'web/public',
  'web/index.html',
  'web/vite.config.ts',
  'web/package.json',
  'src/client',
  'src/base/errors.ts',
  'package-lock.json',
]

function hashOfSources(): string {
  const hash = createHash('sha256')
  for (const source of SOURCES.flatMap((path) => filesIn(join(root, path)))) {
    hash.update(relative(root, source)).update('\0').update(readFileSync(source)).update('\0')
  }
  return hash.digest('hex')
}

function filesIn(path: string): string[] {
  try {
    return readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return [path]
    throw error
  }
}

function builtFrom(): string | undefined {
  try {
    return readFileSync(stamp, 'utf8')
  } catch {
    return undefined
  }
}

const sources = hashOfSources()
if (builtFrom() !== sources) {
  const startedAt = performance.now()
  // Built beside and renamed in one step, so that a server never serves half of the files.
  const made = join(root, '.cache', `web-${process.pid}`)
  const { build } = await import('vite')
  await build({
    configFile: join(root, 'web/vite.config.ts'),
    logLevel: 'warn',
    build: { outDir: made, emptyOutDir: true },
  })
  writeFileSync(join(made, '.sources'), sources)
  mkdirSync(dist, { recursive: true })
  rmSync(dist, { recursive: true, force: true })
  renameSync(made, dist)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  process.stderr.write(`orchub: the control room was built (${seconds} s)\n`)
}
