import { readFileSync } from 'node:fs'

/** Where something is mounted below a folder, of the same file system too. Elsewhere than on Linux nobody says. */
export function mountsBelow(folder: string): string[] {
  const above = `${Buffer.from(folder).toString('latin1')}/`
  return mountPoints()
    .filter((place) => place.startsWith(above))
    .map((place) => Buffer.from(place, 'latin1').toString())
}

/** As bytes, for names need not be text. */
function mountPoints(): string[] {
  try {
    const lines = readFileSync('/proc/self/mountinfo', 'latin1').split('\n')
    return lines.flatMap((line) => line.split(' ')[4]?.replace(/\\(\d{3})/g, byteOf) ?? [])
  } catch {
    return []
  }
}

/** Blanks and the like are written as three octal digits. */
function byteOf(_: string, digits: string): string {
  return String.fromCharCode(Number.parseInt(digits, 8))
}
