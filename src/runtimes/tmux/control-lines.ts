/** Reads what tmux writes in control mode: blocks that answer our commands, and notifications in between. */

export interface Block {
  readonly lines: readonly string[]
  readonly isError: boolean
}

export interface ControlReader {
  /** Whole lines without their end. */
  line(text: string): void
}

const GUARD = /^%(begin|end|error) (\d+) (\d+) (\d+)$/
/** Blocks of the client's own commands carry it; that of the command that attached it does not. */
const OURS = '1'

/**
 * What a screen shows stands in blocks as it is, so that a block ends only with the very numbers it began with.
 * tmux never puts a notification into a block.
 */
export function createControlReader(
  onBlock: (block: Block) => void,
  onNotification: (name: string, rest: string) => void,
): ControlReader {
  let open: { id: string; isOurs: boolean; lines: string[] } | undefined

  return {
    line(text) {
      const guard = GUARD.exec(text)
      if (open !== undefined) {
        const isEnd =
          guard !== null && guard[1] !== 'begin' && `${guard[2]} ${guard[3]} ${guard[4]}` === open.id
        if (!isEnd) {
          open.lines.push(text)
          return
        }
        const { isOurs, lines } = open
        open = undefined
        if (isOurs) onBlock({ lines, isError: guard[1] === 'error' })
      } else if (guard?.[1] === 'begin') {
        open = { id: `${guard[2]} ${guard[3]} ${guard[4]}`, isOurs: guard[4] === OURS, lines: [] }
      } else if (text.startsWith('%')) {
        const space = text.indexOf(' ')
        if (space < 0) onNotification(text.slice(1), '')
        else onNotification(text.slice(1, space), text.slice(space + 1))
      }
      // Anything else is the late complaint of a command that waited, such as load-buffer's; what depends on it fails.
    },
  }
}
