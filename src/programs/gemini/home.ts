import { lstat, mkdir, readdir, readlink, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'

/** Folders of the user's that get entries of ours beside theirs. */
const SHARED_FOLDERS = ['extensions', 'policies'] as const

/**
 * The agent's own. When another Gemini starts in the same project, it deletes conversations that have not begun, and
 * with them those that were taken up again.
 */
const PRIVATE = ['tmp', 'history', 'projects.json', 'state.json']

/**
 * A home for Gemini CLI in which login, settings and memory are the user's own, by links. Its settings for whole
 * systems would do for what we add, but it heeds them only when root owns them.
 */
export async function mirrorHome(user: string, mirror: string): Promise<void> {
  await mkdir(mirror, { recursive: true, mode: 0o700 })
  await mirrorEntries(user, mirror, [...SHARED_FOLDERS, ...PRIVATE])
  for (const folder of SHARED_FOLDERS) {
    await mkdir(join(mirror, folder), { recursive: true })
    await mirrorEntries(join(user, folder), join(mirror, folder), [])
  }
}

async function mirrorEntries(from: string, to: string, except: readonly string[]): Promise<void> {
  const wanted = (await readdir(from).catch(() => [])).filter((name) => !except.includes(name))
  for (const name of await readdir(to)) {
    if (!wanted.includes(name) && (await linkOf(join(to, name))) !== undefined) await rm(join(to, name))
  }
  for (const name of wanted) {
    const target = join(from, name)
    const place = join(to, name)
    // What the program itself put there in place of a link, or before the user had such a thing, stays.
    if ((await isThere(place)) && (await linkOf(place)) === undefined) continue
    if ((await linkOf(place)) === target) continue
    await rm(place, { force: true })
    await symlink(target, place)
  }
}

const linkOf = (path: string) => readlink(path).catch(() => undefined)

const isThere = (path: string) =>
  lstat(path).then(
    () => true,
    () => false,
  )
