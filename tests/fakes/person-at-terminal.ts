import { spawn } from 'node:child_process'

export interface Person {
  type(keys: string): void
  leave(): void
}

/** Attaches a person with their own terminal to a window of a tmux server. */
export async function attachPerson(socket: string, target: string): Promise<Person> {
  const env = { ...process.env, TERM: 'xterm-256color', TMUX: '' }
  const command = `exec tmux -L ${socket} attach-session -t '${target}'`
  const terminal = spawn('script', ['-qefc', command, '/dev/null'], {
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  // tmux draws the screen once the client is attached.
  await new Promise((resolve) => terminal.stdout.once('data', resolve))
  terminal.stdout.resume()
  return {
    type: (keys) => void terminal.stdin.write(keys),
    leave: () => void terminal.kill('SIGKILL'),
  }
}
