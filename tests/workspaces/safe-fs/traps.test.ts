import { execFileSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  allText,
  codesOf,
  expectOk,
  handOver,
  makePlace,
  makeWorkspace,
  problemsOf,
  write,
} from '../harness.ts'

/** Two workspaces in a folder that holds a secret, too. */
async function makePair() {
  const place = makePlace()
  write(place, { 'secret.txt': 'SECRET', 'secrets/key': 'SECRET' })
  const [from, to] = [await makeWorkspace('maker', place), await makeWorkspace('user', place)]
  return { place, from, to, outbox: join(from, 'outbox'), inbox: join(to, 'inbox') }
}

describe('copying from an outbox', () => {
  it('takes the files that match, with their folders (S4.13)', async () => {
    const { from, to, outbox, inbox } = await makePair()
    write(outbox, { 'data.json': '{}', 'sources.md': 'a', 'data/one.csv': '1', 'data/more/two.csv': '2' })
    const { inputs } = expectOk(await handOver(from, to, ['outbox/data.json', 'data/**/*.csv']))
    expect(inputs.map(({ path }) => path)).toEqual([
      'from/data.json',
      'from/data/more/two.csv',
      'from/data/one.csv',
    ])
    expect(readFileSync(join(inbox, 'from/data/more/two.csv'), 'utf8')).toBe('2')
    expect(existsSync(join(inbox, 'from/sources.md'))).toBe(false)
  })

  it('takes everything in a named folder', async () => {
    const { from, to, outbox } = await makePair()
    write(outbox, { 'data/one.csv': '1', 'data/more/.two': '2', 'database.csv': '3' })
    const { inputs } = expectOk(await handOver(from, to, ['outbox/data']))
    expect(inputs.map(({ path }) => path)).toEqual(['from/data/more/.two', 'from/data/one.csv'])
  })

  it('hands on everything but the remains of a failure (S4.11)', async () => {
    const { from, to, outbox } = await makePair()
    write(outbox, { 'summary.md': 's', 'partial/x': '1', 'error_report.md': '2', 'a/partial/x': '3' })
    const { inputs } = expectOk(await handOver(from, to))
    expect(inputs.map(({ path }) => path)).toEqual(['from/a/partial/x', 'from/summary.md'])
  })

  it.each(['', 'sub/'])(
    'follows no symbolic link, to a file or a folder, in %jthe outbox',
    async (folder) => {
      const { place, from, to, outbox, inbox } = await makePair()
      write(outbox, { [`${folder}good.txt`]: 'good' })
      symlinkSync(join(place, 'secret.txt'), join(outbox, `${folder}link.txt`))
      symlinkSync(join(place, 'secrets'), join(outbox, `${folder}links`))
      symlinkSync('good.txt', join(outbox, `${folder}inside`))
      const { inputs, leftOut } = expectOk(await handOver(from, to))
      expect(inputs.map(({ path }) => path)).toEqual([`from/${folder}good.txt`])
      expect(leftOut.map(({ path, code }) => [path, code])).toEqual([
        [`maker/outbox/${folder}inside`, 'symbolic_link'],
        [`maker/outbox/${folder}link.txt`, 'symbolic_link'],
        [`maker/outbox/${folder}links`, 'symbolic_link'],
      ])
      expect(allText(inbox)).not.toContain('SECRET')
    },
  )

  it.each(['outbox/link.txt', 'outbox/links/key', 'outbox/links/*'])(
    'refuses %s where the way leads over a link, and says so',
    async (pattern) => {
      const { place, from, to, outbox } = await makePair()
      symlinkSync(join(place, 'secret.txt'), join(outbox, 'link.txt'))
      symlinkSync(join(place, 'secrets'), join(outbox, 'links'))
      const [problem] = problemsOf(await handOver(from, to, [pattern]))
      expect(problem!.code).toBe('missing')
      expect(problem!.message).toContain(`has nothing that matches ${pattern}`)
      expect(problem!.message).toContain('is a symbolic link')
    },
  )

  it.each(['outbox/data/v/*', 'data/v/passwd', 'outbox/{data,other}/v/**/x', 'outbox/d*/?/passwd'])(
    'names for %s the link on its way before all others, however many there are',
    async (pattern) => {
      const { from, to, outbox } = await makePair()
      write(outbox, { 'good.txt': 'good', 'data/good.txt': 'good' })
      for (let number = 0; number < 150; number++) symlinkSync('/etc', join(outbox, `a${number}`))
      symlinkSync('/etc', join(outbox, 'data/v'))
      for (const patterns of [[pattern], ['outbox/**', pattern]]) {
        const [problem] = problemsOf(await handOver(from, to, patterns))
        expect(problem!.message).toContain(
          `has nothing that matches ${pattern}; maker/outbox/data/v is a symbolic link`,
        )
      }
    },
  )

  it('refuses an outbox that is itself a link', async () => {
    const { place, from, to, outbox } = await makePair()
    rmSync(outbox, { recursive: true })
    symlinkSync(join(place, 'secrets'), outbox)
    expect(codesOf(await handOver(from, to))).toEqual(['symbolic_link'])
  })

  it('does not read a file that has another name outside', async () => {
    const { place, from, to, outbox, inbox } = await makePair()
    linkSync(join(place, 'secret.txt'), join(outbox, 'mine.txt'))
    write(outbox, { 'good.txt': 'good' })
    const { inputs, leftOut } = expectOk(await handOver(from, to))
    expect(inputs.map(({ path }) => path)).toEqual(['from/good.txt'])
    expect(leftOut.map(({ code }) => code)).toEqual(['hard_link'])
    expect(allText(inbox)).not.toContain('SECRET')
    expect(codesOf(await handOver(from, to, ['outbox/mine.txt']))).toEqual(['missing'])
  })

  it('reads a file whose names are all in the outbox', async () => {
    const { from, to, outbox, inbox } = await makePair()
    write(outbox, { 'one.txt': 'same' })
    linkSync(join(outbox, 'one.txt'), join(outbox, 'two.txt'))
    expect(expectOk(await handOver(from, to)).inputs).toHaveLength(2)
    expect(readFileSync(join(inbox, 'from/two.txt'), 'utf8')).toBe('same')
  })

  it('opens no pipe, socket or device, and does not wait for one', async () => {
    const { from, to, outbox } = await makePair()
    execFileSync('mkfifo', [join(outbox, 'pipe')])
    const server = createServer().listen(join(outbox, 'socket'))
    await new Promise((resolve) => server.once('listening', resolve))
    write(outbox, { 'good.txt': 'good' })
    const { inputs, leftOut } = expectOk(await handOver(from, to))
    server.close()
    expect(inputs).toHaveLength(1)
    expect(leftOut.map(({ message }) => message)).toEqual([
      'maker/outbox/pipe is a named pipe',
      'maker/outbox/socket is a socket',
    ])
  })

  it('leaves out misleading names, and escapes them in messages', async () => {
    const { from, to, outbox } = await makePair()
    const names = [
      Buffer.from('new\nline'),
      Buffer.from('bell\u0007'),
      Buffer.from('\u202etxt.exe'),
      Buffer.from([0x66, 0xff, 0xfe]),
    ]
    for (const name of names) writeFileSync(Buffer.concat([Buffer.from(`${outbox}/`), name]), 'x')
    write(outbox, { 'ünï “c” 😀 $(x); -rf.txt': 'fine', '-rf': 'fine', 'a|b*?[c]': 'fine' })
    const { inputs, leftOut } = expectOk(await handOver(from, to))
    expect(inputs.map(({ path }) => path)).toEqual([
      'from/-rf',
      'from/a|b*?[c]',
      'from/ünï “c” 😀 $(x); -rf.txt',
    ])
    expect(leftOut.map(({ code }) => code)).toEqual(['bad_name', 'bad_name', 'bad_name', 'bad_name'])
    expect(leftOut.map(({ path }) => path)).toEqual([
      'maker/outbox/bell\\u{7}',
      'maker/outbox/f\\xff\\xfe',
      'maker/outbox/new\\u{a}line',
      'maker/outbox/\\u{202e}txt.exe',
    ])
  })

  it('leaves out paths that are too long', async () => {
    const { from, to, outbox } = await makePair()
    const long = `${'x'.repeat(200)}/`.repeat(3)
    write(outbox, { [`${long}file`]: '1', 'good.txt': '2' })
    const { inputs, leftOut } = expectOk(await handOver(from, to, ['outbox/**'], { pathBytes: 500 }))
    expect(inputs.map(({ path }) => path)).toEqual(['from/good.txt'])
    expect(leftOut.map(({ code }) => code)).toEqual(['bad_path'])
  })

  it.each(['../secret.txt', 'outbox/../../secret.txt', '/etc/passwd', 'outbox/./x', 'a\\b', 'outbox/{a', ''])(
    'refuses the pattern %j',
    async (pattern) => {
      const { from, to } = await makePair()
      expect(codesOf(await handOver(from, to, [pattern]))).toEqual(['bad_path'])
    },
  )

  it.each(['..', 'inbox/../..', '/tmp', 'inbox/../outbox', 'in\nbox', 'a\\b'])(
    'refuses to copy to %j',
    async (copyTo) => {
      const { from, to, outbox } = await makePair()
      write(outbox, { 'good.txt': 'good' })
      expect(codesOf(await handOver(from, to, ['outbox/**'], {}, copyTo))).toEqual(['bad_path'])
    },
  )

  it('writes through no link that an agent has put into its own workspace', async () => {
    const { place, from, to, outbox, inbox } = await makePair()
    write(outbox, { key: 'overwritten' })
    symlinkSync(join(place, 'secrets'), inbox)
    expectOk(await handOver(from, to, ['outbox/**'], {}, 'inbox'))
    expect(readFileSync(join(place, 'secrets/key'), 'utf8')).toBe('SECRET')
    expect(readFileSync(join(inbox, 'key'), 'utf8')).toBe('overwritten')
  })

  it('stops at its limits with a clear error (files, depth, bytes)', async () => {
    const { from, to, outbox, inbox } = await makePair()
    write(outbox, { 'a/b/c/d': '12345', e: '67890' })
    const refusal = async (limits: object) =>
      problemsOf(await handOver(from, to, ['outbox/**'], limits))[0]!.message
    expect(await refusal({ files: 4 })).toBe('maker/outbox holds more than 4 files, which is the limit')
    expect(await refusal({ depth: 2 })).toBe('maker/outbox has folders more than 2 deep, which is the limit')
    expect(await refusal({ copiedBytes: 9 })).toBe(
      'maker/outbox/e would exceed the limit of 9 bytes for all copies together',
    )
    expect(await refusal({ inlineBytes: 4, referencedBytes: 9 })).toBe(
      'maker/outbox/e would exceed the limit of 9 bytes for all references together',
    )
    expect(existsSync(inbox)).toBe(false)
    expectOk(await handOver(from, to, ['outbox/**'], { files: 5, depth: 3, copiedBytes: 10 }))
  })

  it('hands on a large file by reference, and reads it in pieces (C21)', async () => {
    const { from, to, outbox, inbox } = await makePair()
    const size = 96 * 1024 * 1024
    write(outbox, { 'data/large.bin': '' })
    truncateSync(join(outbox, 'data/large.bin'), size)
    const { manifest } = expectOk(await handOver(from, to))
    const { references } = JSON.parse(readFileSync(join(inbox, 'references.json'), 'utf8'))
    const [{ sha256, ...reference }] = references
    expect(reference).toEqual({
      path: join(outbox, 'data/large.bin'),
      size,
      instead_of: 'inbox/from/data/large.bin',
    })
    expect(sha256).toBe(
      execFileSync('sha256sum', [join(outbox, 'data/large.bin')], { encoding: 'utf8' }).slice(0, 64),
    )
    expect(manifest.inputs.map(({ path }) => path)).toEqual([
      'from/data/large.bin',
      'instructions.md',
      'references.json',
    ])
    expect(existsSync(join(inbox, 'from'))).toBe(false)
  })

  it('refuses a file that is written to while it is being read', async () => {
    const { from, to, outbox } = await makePair()
    const file = join(outbox, 'growing.bin')
    writeFileSync(file, Buffer.alloc(9 * 1024 * 1024))
    const handing = handOver(from, to)
    const growing = setInterval(() => writeFileSync(file, 'x', { flag: 'a' }), 0)
    try {
      expect(codesOf(await handing)).toEqual(['changed'])
    } finally {
      clearInterval(growing)
    }
  })

  it('never copies a secret from any random tree of traps', async () => {
    const kind = fc.constantFrom('file', 'link', 'folderLink', 'hardLink', 'pipe', 'up', 'self')
    const entry = fc.record({ folder: fc.constantFrom('', 'a', 'a/b', 'c'), kind })
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { minLength: 1, maxLength: 12 }), async (entries) => {
        const { place, from, to, outbox, inbox } = await makePair()
        for (const [index, { folder, kind }] of entries.entries()) {
          mkdirSync(join(outbox, folder), { recursive: true })
          const path = join(outbox, folder, `${kind}${index}`)
          if (kind === 'file') writeFileSync(path, `good ${index}`)
          else if (kind === 'link') symlinkSync(join(place, 'secret.txt'), path)
          else if (kind === 'folderLink') symlinkSync(join(place, 'secrets'), path)
          else if (kind === 'hardLink') linkSync(join(place, 'secret.txt'), path)
          else if (kind === 'pipe') execFileSync('mkfifo', [path])
          else symlinkSync(kind === 'up' ? '..' : `${kind}${index}`, path)
        }
        write(outbox, { 'summary.md': 'good' })
        const files = entries.filter(({ kind }) => kind === 'file').length
        const handed = expectOk(await handOver(from, to))
        expect(handed.inputs).toHaveLength(files + 1)
        expect(handed.leftOut).toHaveLength(entries.length - files)
        expect(allText(inbox)).not.toContain('SECRET')
        expect(readdirSync(place).sort()).toEqual(['maker', 'secret.txt', 'secrets', 'user'])
      }),
      { numRuns: 40 },
    )
  })
})

describe('an incomplete copy', () => {
  it('leaves the previous inbox in place', async () => {
    const { from, to, outbox, inbox } = await makePair()
    write(outbox, { 'a.txt': 'first' })
    expectOk(await handOver(from, to))
    write(outbox, { 'b.txt': 'second', 'c.txt': 'third' })
    expect(codesOf(await handOver(from, to, ['outbox/**'], { copiedBytes: 8 }))).toEqual(['too_large'])
    expect(readdirSync(join(inbox, 'from'))).toEqual(['a.txt'])
    expect(readdirSync(to).sort()).toEqual(['SKILL.md', 'inbox', 'outbox', 'status.json', 'workspace'])
  })

  it('is made again from the start after a crash', async () => {
    const { from, to, outbox, inbox } = await makePair()
    write(outbox, { 'a.txt': 'first' })
    expectOk(await handOver(from, to))
    renameSync(inbox, join(to, '.inbox.before'))
    write(to, { '.inbox.half/from/a.txt': 'fi' })
    expectOk(await handOver(from, to))
    expect(readFileSync(join(inbox, 'from/a.txt'), 'utf8')).toBe('first')
    expect(readdirSync(to).sort()).toEqual(['SKILL.md', 'inbox', 'outbox', 'status.json', 'workspace'])
  })
})
