// A count with noise that is exact, in JavaScript, without packages.
//
//     dpaudit attack 'exec:node examples/targets/noisy_count.js' \
//         --claim "epsilon=1" --relation replace-one --domain 0,1 --rows 3
//
// Counts the positive numbers; one row changes that by at most 1. The noise k has probability proportional to e^-|k|,
// and is made of integers alone (Canonne, Kamath and Steinke 2020, algorithms 1 and 2). An argument, an integer, is the
// epsilon that the noise is made for; 2 is half the noise, which an audit of epsilon = 1 finds.
"use strict";
const crypto = require("node:crypto");
const readline = require("node:readline");

const EPSILON = Number(process.argv[2] ?? 1);

// 32-bit words from a seed (the key of a stream cipher), or from the system if it is null.
function words(seed) {
  const key = crypto.createHash("sha256").update(String(seed)).digest();
  const cipher = seed === null ? null : crypto.createCipheriv("aes-256-ctr", key, Buffer.alloc(16));
  let block = Buffer.alloc(0);
  let at = 0;
  return () => {
    if (at === block.length) {
      block = cipher ? cipher.update(Buffer.alloc(1 << 14)) : crypto.randomBytes(1 << 14);
      at = 0;
    }
    at += 4;
    return block.readUInt32LE(at - 4);
  };
}

// An integer below k, each as likely: words that would make the first ones likelier are not used.
function below(k, next) {
  const most = 2 ** 32 - (2 ** 32 % k);
  let word = next();
  while (word >= most) word = next();
  return word % k;
}

// True with probability 1/e = 1 - 1 + 1/2 - 1/6 + ...
function oneInE(next) {
  let k = 1;
  while (below(k, next) === 0) k += 1;
  return k % 2 === 1;
}

function geometric(next) {
  let k = 0;
  while (oneInE(next)) k += 1;
  return Math.floor(k / EPSILON);
}

function answer({ id, data, n, seed }) {
  try {
    const next = words(seed ?? null);
    const count = data.filter((value) => value > 0).length;
    const outputs = Array.from({ length: n }, () => count + geometric(next) - geometric(next));
    return { id, outputs };
  } catch (error) {
    return { id, error: { type: error.name, message: error.message } };
  }
}

const write = (message) => process.stdout.write(JSON.stringify(message) + "\n");
const noise = { distribution: "two-sided geometric", scale: 1 / EPSILON, sensitivity: 1 };
write({ hello: { protocol: 1, seeded: true, states: { noise } } });
readline.createInterface({ input: process.stdin }).on("line", (line) => write(answer(JSON.parse(line))));
