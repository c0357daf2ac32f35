export interface Block {
  readonly lines: readonly string[]
  readonly isError: boolean
}

const BLOCK_LINE = /^%(begin|end|error) (\d+) (\d+) (\d+)$/
/** Set on blocks of the client's own commands, but not on that of the command that attached it. */
const CLIENT_FLAG = '1'

/**
 * Parses control-mode output: blocks that respond to our commands, and notifications in between. Blocks
 * contain raw screen text, so a block ends only at the exact numbers it began with. tmux never puts a
 * notification inside a block. Returns the function that takes each line, without its newline.
 */
export function createControlReader(
  onBlock: (block: Block) => void,
  onNotification: (name: string, rest: string) => void,
): (line: string) => void {
  let open: { id: string; isOurs: boolean; lines: string[] } | undefined

  return (text) => {
    const guard = BLOCK_LINE.exec(text)
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
      open = { id: `${guard[2]} ${guard[3]} ${guard[4]}`, isOurs: guard[4] === CLIENT_FLAG, lines: [] }
    } else if (text.startsWith('%')) {
      const space = text.indexOf(' ')
      if (space < 0) onNotification(text.slice(1), '')
      else onNotification(text.slice(1, space), text.slice(space + 1))
    }
    // Ignore anything else: it is a late error of an asynchronous command such as load-buffer, and the
    // command that depends on it fails.
  }
}
