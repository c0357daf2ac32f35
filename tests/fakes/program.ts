/**
 * The command line in few files, made from the very sources: tests start it hundreds of times, most of them to kill
 * it, and to load a thousand modules takes half a second of processor time each time.
 */
import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = join(import.meta.dirname, '..', '..')
const SOURCE = join(ROOT, 'src', 'cli', 'main.ts')
const PLACE = join(ROOT, '.cache', 'program')
const DAY_MS = 24 * 3600_000

/** Of the sources as they are now. */
function made(): string {
  const hash = createHash('sha256')
  for (const file of ['package-lock.json', ...globSync('src/**/*.ts', { cwd: ROOT }).sort()]) {
    const { mtimeMs, size } = statSync(join(ROOT, file))
    hash.update(`${file} ${mtimeMs} ${size}\n`)
  }
  return join(PLACE, hash.digest('hex').slice(0, 16), 'main.js')
}

/** What to give Node. It is the sources themselves for a benchmark, and when they have changed since the tests began. */
export function programFile(): string {
  if (process.env.VITEST === undefined) return SOURCE
  const file = made()
  return existsSync(file) ? file : SOURCE
}

/** Before all tests; several runs may do it at once. */
export async function setup() {
  const file = made()
  if (existsSync(file)) return
  mkdirSync(PLACE, { recursive: true })
  for (const name of readdirSync(PLACE)) {
    const earlier = join(PLACE, name)
    if (statSync(earlier).mtimeMs < Date.now() - DAY_MS) rmSync(earlier, { recursive: true, force: true })
  }
  const folder = mkdtempSync(join(PLACE, 'new-'))
  const { build } = await import('vite')
  try {
    await build({
      ...{ root: ROOT, configFile: false, publicDir: false, logLevel: 'error', plugins: [inPlace] },
      // With all the packages that it uses.
      ssr: { noExternal: true },
      build: { ssr: SOURCE, outDir: folder, emptyOutDir: false, target: 'esnext', minify: false },
    })
    renameSync(folder, dirname(file))
  } catch (error) {
    rmSync(folder, { recursive: true })
    // Another run has made it; or a source is broken, which concerns only those tests that start it.
    if (!existsSync(file)) process.stderr.write(`The sources cannot be put together: ${error}\n`)
  }
}

/** It finds its pages and its examples where its sources would. */
const inPlace = {
  name: 'in-place',
  transform: {
    filter: { id: /\/src\/.*\.ts$/, code: 'import.meta.' },
    handler: (code: string, id: string) =>
      code
        .replaceAll('import.meta.dirname', JSON.stringify(dirname(id)))
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href)),
  },
}
